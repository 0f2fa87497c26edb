import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import cors from '@fastify/cors'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type RawServerDefault,
} from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import type { Registry } from 'prom-client'
import { maxParamLength, trackMethods } from './allowed-methods.ts'
import type { TrustProxy } from './env.ts'
import { type HealthReport, serveHealth } from './health.ts'
import {
  answerSocketError,
  type ConnectionLimits,
  defaultLimits,
  limitConnections,
} from './limits/connections.ts'
import { shedLoad } from './limits/load-shedding.ts'
import { AccessLog, AccessLogController, registerLogMetrics } from './logging/access-log.ts'
import { LazyLogger } from './logging/lazy-logger.ts'
import type { Logger } from './logging/logger.ts'
import { serveMetrics } from './metrics.ts'
import { type About, serveOpenapi } from './openapi/routes.ts'
import { answerError, HttpError, malformedBody } from './problem-details.ts'
import { parserOptions, rejectAmbiguousFraming } from './request-framing.ts'
import { readRequestId } from './request-id.ts'
import { validateRequests, zodCompilers } from './validation.ts'

export { Histogram, Registry } from 'prom-client'
export {
  includesTag,
  isCurrent,
  readIfMatch,
  readIfNoneMatch,
  type TagList,
} from './entity-tags.ts'
export { InvalidEnvironment, readEnv, serverSettings } from './env.ts'
export type { Check, HealthReport } from './health.ts'
export { createLogger, type Logger } from './logging/logger.ts'
export { createMetrics, registerCounter, registerDiskGauges, registerGauge } from './metrics.ts'
export type { HeaderDoc, ResponseDoc } from './openapi/document.ts'
export { Pagination, pageQuery, paginate } from './pagination.ts'
export { type Fault, HttpError, Problem, validationFailed } from './problem-details.ts'
export { serveUntilSignal } from './serve-until-signal.ts'
export { exitOnStartFailure } from './start-failure.ts'
export { toFaults } from './validation.ts'

export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>

export interface AppOptions {
  about: About
  log: Logger
  trustProxy: TrustProxy
  corsOrigins: string[]
  /** `alarming` are the codes of problems that somebody is to be told of when the first one happens. */
  metrics: { registry: Registry; token: string | undefined; alarming?: string[] }
  health: () => HealthReport
  /** Bytes of a body that is not streamed; 1 MiB unless said otherwise. */
  bodyLimit?: number
  connections?: Partial<ConnectionLimits>
  /** What a path is told that cannot be percent-decoded; `malformed_url` unless said otherwise. */
  badUrl?: () => HttpError
}

/**
 * A Fastify app that answers as the contract says for everything that both services share: request ids, problems,
 * strict validation, JSON, CORS, logs, /health, /metrics, /openapi.json and /docs. The service registers its access
 * rules and routes in `routes`; after them every other method of a known path is a 405.
 */
export async function createApp(
  options: AppOptions,
  routes: (app: App) => Promise<void>,
): Promise<App> {
  const limits = { ...defaultLimits, ...options.connections }
  const app: App = Fastify<RawServerDefault, IncomingMessage, ServerResponse, FastifyBaseLogger>({
    schemaController: { compilersFactory: zodCompilers },
    loggerInstance: options.log as FastifyBaseLogger,
    logController: new AccessLogController(new AccessLog(options.log)),
    // It has every method of a logger, whose overloads cannot be written down.
    childLoggerFactory: (log, bindings, settings) =>
      new LazyLogger(() => log.child(bindings, settings)) as unknown as FastifyBaseLogger,
    trustProxy: options.trustProxy,
    bodyLimit: options.bodyLimit ?? 1_048_576,
    http: {
      ...parserOptions,
      headersTimeout: limits.headersTimeout,
      connectionsCheckingInterval: Math.ceil(limits.headersTimeout / 4),
    },
    forceCloseConnections: 'idle',
    // A request on an open connection while we stop is still served; the connection closes after it.
    return503OnClosing: false,
    requestIdHeader: false,
    genReqId: (request) => readRequestId(request.headers['x-request-id']),
    routerOptions: { maxParamLength },
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id)
      const isBadUrl = error.code === 'FST_ERR_BAD_URL'
      return answerError((isBadUrl && options.badUrl?.()) || error, request, reply)
    },
    clientErrorHandler: answerSocketError,
  }).withTypeProvider<ZodTypeProvider>()

  app.setErrorHandler(answerError)
  app.setNotFoundHandler(() => {
    throw new HttpError(
      404,
      'not_found',
      'There is nothing at this path: see /docs for what there is',
    )
  })
  // Hooks of every request call back: a promise for each would cost more than what they do.
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff')
    done()
  })
  registerLogMetrics(options.metrics.registry, options.log)
  shedLoad(app, limits, options.metrics.registry)
  limitConnections(app, limits)
  rejectAmbiguousFraming(app)
  leaveInOrder(app)
  takeJson(app)
  validateRequests(app)
  const refuseOtherMethods = trackMethods(app)
  if (options.corsOrigins.length > 0) {
    await app.register(cors, {
      origin: options.corsOrigins,
      exposedHeaders,
      methods,
      strictPreflight: false,
      maxAge: 600,
    })
  }
  serveOpenapi(app, options.about)
  const { token } = options.metrics
  if (token) serveMetrics(app, { ...options.metrics, token })
  serveHealth(app, options.about.version, options.health)
  await routes(app)
  refuseOtherMethods()
  return app
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']
const exposedHeaders = [
  'etag',
  'location',
  'retry-after',
  'x-request-id',
  'age',
  'warning',
  'www-authenticate',
]

// Connections that are busy when we stop are told to close with their answer: nobody would close them after it.
function leaveInOrder(app: App) {
  let leaving = false
  app.addHook('preClose', async () => {
    leaving = true
  })
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (leaving) reply.header('connection', 'close')
    done(null, payload)
  })
}

// JSON is UTF-8: bytes that are not are refused, since reading on would change somebody's record silently.
function takeJson(app: App) {
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (!isUtf8(body as Buffer)) return done(malformedBody('The body is not valid UTF-8'))
    // It answers through `done`.
    void parseJson(request, body.toString(), (error, value) =>
      hasMoreThan(mostValues, value) ? done(tooManyValues()) : done(error, value),
    )
  })
}

// Several times what the largest sensible body has. Each value costs far more to judge, and to find fault with, than to
// send: a body of 300 KB with 100,000 of them held a service for seconds.
const mostValues = 5000

const tooManyValues = () =>
  new HttpError(413, 'body_too_large', `The body has more than ${mostValues} values`)

// Counts without recursion: a body may be nested as deeply as it is long.
function hasMoreThan(most: number, body: unknown): boolean {
  const found = [body]
  for (let at = 0; at < found.length; at += 1) {
    const value = found[at]
    if (typeof value !== 'object' || value === null) continue
    const inner = Array.isArray(value) ? value : Object.values(value)
    if (found.length + inner.length > most) return true
    found.push(...inner)
  }
  return false
}
