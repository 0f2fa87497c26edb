import type { FastifyInstance } from 'fastify'
import { createLogger, type Logger } from '../logging/logger.ts'
import { serveUntilSignal } from './serve-until-signal.ts'
import { exitOnStartFailure } from './start-failure.ts'

interface ServiceConfig {
  address: { host: string; port: number }
  logLevel: string
}

interface ServiceProgram<Config extends ServiceConfig> {
  /** Names the service in the log. */
  name: string
  readConfig: (env: Record<string, string | undefined>) => Config
  /** Opens the stores; the app's `onClose` hooks close them. */
  createService: (config: Config, log: Logger) => Promise<FastifyInstance>
}

/** Runs a service from its environment until a signal. See {@link exitOnStartFailure} for failed starts. */
export async function startService<Config extends ServiceConfig>(program: ServiceProgram<Config>) {
  try {
    const config = program.readConfig(process.env)
    const log = createLogger({ name: program.name, level: config.logLevel })
    await serveUntilSignal(await program.createService(config, log), config.address)
  } catch (error) {
    exitOnStartFailure(error)
  }
}
