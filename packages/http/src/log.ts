import { type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import { type DestinationStream, type Logger, pino } from 'pino'

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
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    redact: { paths: secretPaths, censor: '[redacted]' },
  }
  return to ? pino(options, to) : pino(options)
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

/** One line when a request has ended; health checks are silent. */
export class RequestLog extends LogController {
  constructor() {
    super({ requestIdLogLabel: 'request_id' })
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
      method: request.method,
      path: request.url.split('?', 1)[0],
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime * 10) / 10,
      client: request.ip,
    }
    if (error) reply.log.warn({ ...facts, err: error }, 'request broken off')
    else reply.log.info(facts, 'request completed')
  }
}
