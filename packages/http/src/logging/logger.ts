import {
  type FastifyBaseLogger,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import { type DestinationStream, type Logger, pino } from 'pino'
import { logOutput } from './log-output.ts'

export type { Logger }

/** JSON lines on standard output; credentials never reach them. `to` is for tests. */
export function createLogger(
  settings: { name: string; level: string },
  to?: DestinationStream,
): Logger {
  const options = {
    name: settings.name,
    level: settings.level,
    base: { name: settings.name },
    timestamp: tellTime,
    redact: { paths: secretPaths, censor: '[redacted]' },
  }
  return pino(options, to ?? logOutput())
}

// Many lines have the same millisecond.
let told = { at: 0, text: '' }
function tellTime(): string {
  const at = Date.now()
  if (at !== told.at) told = { at, text: `,"time":"${new Date(at).toISOString()}"` }
  return told.text
}

const secretNames = [
  'authorization',
  'password',
  'access_token',
  'token',
  'secret',
  'ApiKey',
  'apiKey',
]
const secretPaths = secretNames.flatMap((name) => [name, `*.${name}`, `*.*.${name}`])

/**
 * The log of one request: a child of the service's with its id, made when something is first written to it. Most
 * requests write their last line only, which needs none.
 */
export class LazyLog {
  readonly #make: () => FastifyBaseLogger
  #made: FastifyBaseLogger | undefined

  constructor(make: () => FastifyBaseLogger) {
    this.#make = make
  }

  get level() {
    return this.#log.level
  }

  child(...words: Parameters<FastifyBaseLogger['child']>) {
    return this.#log.child(...words)
  }

  fatal(...words: unknown[]) {
    this.#write('fatal', words)
  }

  error(...words: unknown[]) {
    this.#write('error', words)
  }

  warn(...words: unknown[]) {
    this.#write('warn', words)
  }

  info(...words: unknown[]) {
    this.#write('info', words)
  }

  debug(...words: unknown[]) {
    this.#write('debug', words)
  }

  trace(...words: unknown[]) {
    this.#write('trace', words)
  }

  silent() {}

  #write(level: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace', words: unknown[]) {
    Reflect.apply(this.#log[level], this.#log, words)
  }

  get #log(): FastifyBaseLogger {
    this.#made ??= this.#make()
    return this.#made
  }
}

/** One line when a request has ended; health checks are silent. */
export class RequestLog extends LogController {
  readonly #log: Logger

  constructor(log: Logger) {
    super({ requestIdLogLabel: 'request_id' })
    // Looking for secrets in each line costs a sixth of a small request, and these fields hold none.
    this.#log = log.child({}, { redact: [] })
  }

  override incomingRequest() {}

  override routeNotFound() {}

  // The one error handler logs what a person must see.
  override defaultErrorLog() {}

  override requestCompleted(
    error: Error | null | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ) {
    if (request.routeOptions.url === '/health') return
    const facts = {
      request_id: request.id,
      method: request.method,
      path: request.url.split('?', 1)[0],
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime * 10) / 10,
      client: request.ip,
    }
    if (error) request.server.log.warn({ ...facts, err: error }, 'request broken off')
    else this.#log.info(facts, 'request completed')
  }
}
