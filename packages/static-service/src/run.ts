import './memory.ts' // Before whatever else takes memory.
import { InvalidUsersFile, StartRefusedError } from '@domains-and-files/auth'
import {
  createLogger,
  exitOnStartFailure,
  InvalidEnvironment,
  serveUntilSignal,
} from '@domains-and-files/http'
import { DataDirError } from '@domains-and-files/persistence'
import { readConfig } from './config.ts'
import { createService } from './service.ts'

try {
  const config = readConfig(process.env)
  const log = createLogger({ name: 'static-service', level: config.logLevel })
  await serveUntilSignal(await createService(config, log), config.address)
} catch (error) {
  exitOnStartFailure(error, [InvalidEnvironment, DataDirError, StartRefusedError, InvalidUsersFile])
}
