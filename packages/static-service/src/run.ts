import './memory.ts' // Before whatever else takes memory.
import { BadUsersFile, StartRefused } from '@domains-and-files/auth'
import { BadEnvironment, createLogger, failStart, serve } from '@domains-and-files/http'
import { FolderRefused } from '@domains-and-files/persistence'
import { readConfig } from './config.ts'
import { makeService } from './service.ts'

try {
  const config = readConfig(process.env)
  const log = createLogger({ name: 'static-service', level: config.logLevel })
  await serve(await makeService(config, log), config.address)
} catch (error) {
  failStart(error, [BadEnvironment, FolderRefused, StartRefused, BadUsersFile])
}
