import { DataDirError, explainDatabaseFailure } from '@domains-and-files/persistence'
import type { FastifyInstance } from 'fastify'
import { createLogger, type Logger } from './logging/logger.ts'

/** The configuration does not permit a start. The message is for the operator, in full sentences. */
export class StartRefusedError extends DataDirError {}

interface ServiceConfig {
  host: string
  port: number
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
  // PID 1 of a container needs handlers: the kernel ignores signals without one.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, exitStarting)
  try {
    const config = program.readConfig(process.env)
    const log = createLogger({ name: program.name, level: config.logLevel })
    await serveUntilSignal(await program.createService(config, log), config)
  } catch (error) {
    exitOnStartFailure(error)
  }
}

// Exiting during the start is safe, since a crash is.
const exitStarting = () => process.exit(0)

/**
 * Listens until SIGTERM or SIGINT. Then stops accepting, finishes running requests (10 s at most), closes the stores by
 * the app's onClose hooks, and exits 0. A second signal exits at once.
 */
async function serveUntilSignal(app: FastifyInstance, { host, port }: ServiceConfig) {
  let stopping = false
  const stop = (signal: NodeJS.Signals) => {
    if (stopping) process.exit(1)
    stopping = true
    app.log.info({ signal }, 'stopping')
    const closeConnections = setTimeout(() => app.server.closeAllConnections(), 9_000)
    setTimeout(() => {
      app.log.warn('stopped before all requests finished')
      process.exit(0)
    }, 10_000).unref()
    app.close().then(
      () => {
        clearTimeout(closeConnections)
        app.log.info('stopped')
        process.exit(0)
      },
      (error) => {
        app.log.error({ err: error }, 'graceful shutdown failed')
        process.exit(1)
      },
    )
  }
  // In this order: without a listener in between, a signal that is on its way to one would be lost.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop).off(signal, exitStarting)
  // libuv accepts one connection per event-loop iteration, so a burst needs a long backlog.
  await app.listen({ host, port, backlog: 4096 })
}

/**
 * Ends the process with one sentence on standard error, if an operator can fix the cause: settings, the disk, a
 * database or the address. The status is 1; 78 if systemd started the process and a restart would fail again.
 * @throws every other error.
 */
function exitOnStartFailure(error: unknown): never {
  const sentence = explain(error)
  if (!sentence) throw error
  process.stderr.write(`${sentence}\n`)
  // systemd.exec(5): equal only in the process that systemd itself executed, not in its children.
  const isStartedBySystemd = process.env.SYSTEMD_EXEC_PID === String(process.pid)
  process.exit(isStartedBySystemd && error instanceof StartRefusedError ? exConfig : 1)
}

// EX_CONFIG of sysexits.h. The units name it in RestartPreventExitStatus.
const exConfig = 78

type SystemError = Error & { code?: unknown; syscall?: unknown; address?: unknown; port?: unknown }

function explain(failure: unknown): string | undefined {
  const error = explainDatabaseFailure(failure)
  if (!(error instanceof Error)) return undefined
  const { code, syscall, address, port, message }: SystemError = error
  if (error instanceof DataDirError || code === 'DATABASE_NEWER') return message
  if (String(code).includes('SQLITE_')) return `Cannot start: cannot use the database in DATA_DIR: ${message}.`
  if (code === 'EADDRINUSE')
    return `Cannot start: port ${port} on ${address} is in use: stop the program that uses it, or set PORT.`
  // The message of a SystemError names the call, and the path or the address.
  return syscall ? `Cannot start: ${message}` : undefined
}
