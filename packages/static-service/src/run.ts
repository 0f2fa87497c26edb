import './memory.ts' // Before whatever else takes memory.
import { BadUsersFile, StartRefused } from '@house/auth'
import { FolderRefused } from '@house/data'
import { BadEnvironment, createLogger, failStart, serve } from '@house/http'
import { readConfig } from './config.ts'
import { makeService } from './service.ts'

try {
  const config = readConfig(process.env)
  const log = createLogger({ name: 'static-service', level: config.logLevel })
  await serve(await makeService(config, log), config.address)
} catch (error) {
  failStart(error, [BadEnvironment, FolderRefused, StartRefused, BadUsersFile])
}
