import type { IncomingMessage, ServerResponse } from 'node:http'
import Fastify, { type FastifyBaseLogger, type FastifyInstance, type RawServerDefault } from 'fastify'
import { type HttpError, malformedUrl } from './http-error.ts'
import { answerSocketError, type ConnectionLimits, defaultLimits, limitConnections } from './limits/connections.ts'
import { shedLoad } from './limits/load-shedding.ts'
import { limitBodies, parseJsonBodies, smallBody } from './limits/request-bodies.ts'
import { AccessLog, type Redaction } from './logging/access-log.ts'
import type { Logger } from './logging/logger.ts'
import { type HealthReport, serveHealth } from './monitoring/health.ts'
import { type Metrics, RequestMetrics, registerCounters, serveMetrics } from './monitoring/metrics.ts'
import { type About, serveOpenapi } from './openapi/document.ts'
import { answerError } from './problem-details.ts'
import { type RawRoute, RawRouteServer } from './requests/raw-route.ts'
import {
  allowOrigins,
  type CrossOriginHeaders,
  checkRequestHeads,
  crossOriginHeaders,
  maxParamLength,
  parserOptions,
  refuseOtherMethods,
  refuseUndecodable,
  requestIdOf,
  type TrustProxy,
} from './requests/request-head.ts'
import { hiddenRoute, validateRequests, zodCompilers } from './requests/validation.ts'
import { serveOptionalSlashes, type ZodTypeProvider } from './route-schema.ts'

export type App = FastifyInstance<RawServerDefault, IncomingMessage, ServerResponse, FastifyBaseLogger, ZodTypeProvider>

export interface AppOptions extends Partial<ConnectionLimits> {
  about: About
  log: Logger
  trustProxy: TrustProxy
  corsOrigin: string[]
  /** Response headers that pages of these origins may read, beside those that every service has. */
  exposedHeaders?: string[]
  /** Undefined: nothing is measured, and there is no GET /metrics. */
  metrics: Metrics | undefined
  /** Problem codes exported as 0 from the start, so that an alert sees their first increase. */
  alarmingCodes?: string[]
  health: () => HealthReport
  /** Get their requests before the framework; the most frequent first. */
  rawRoutes?: RawRoute[]
  /** Secrets in paths, which the logs replace. */
  redaction?: Redaction
  /** The error for a URL that cannot be percent-decoded. Default: `malformed_url`. */
  badUrl?: () => HttpError
  /** Whether GET / leads to the docs. Default: true; false where the service has a page of its own. */
  servesRoot?: boolean
}

/**
 * A Fastify app with what both services share: request ids, problem details, strict validation, JSON, CORS, logs,
 * /health, /metrics, /openapi.json and /docs. `routes` registers the access rules and routes of the service; every
 * other method of their paths then gets 405.
 */
export async function createApp(options: AppOptions, routes: (app: App) => Promise<void>): Promise<App> {
  const limits = { ...defaultLimits, ...options }
  const { log, metrics, trustProxy, redaction, rawRoutes, badUrl = malformedUrl } = options
  const requests = metrics && new RequestMetrics(metrics, options.alarmingCodes)
  const accessLog = new AccessLog(log, { trustProxy, metrics: requests, redaction })
  const crossOrigin = crossOriginHeaders(options.corsOrigin, [exposedHeaders, ...(options.exposedHeaders ?? [])])
  const app = createServer(options, { limits, accessLog, crossOrigin, badUrl })
  serveOptionalSlashes(app)
  const lost = 'Log lines lost: disk full, or reader slow or closed'
  registerCounters(metrics, {
    log_lines_dropped_total: [lost, () => log.output.droppedLines],
  })
  const { stallTimeoutMs } = limits
  const rawRoute = rawRoutes && new RawRouteServer(app, rawRoutes, { accessLog, stallTimeoutMs })
  const bodies = limitBodies(app, limits, metrics)
  shedLoad(app, limits, { metrics, rawRoute, crossOrigin, bodies })
  limitConnections(app, limits)
  checkRequestHeads(app)
  parseJsonBodies(app)
  validateRequests(app)
  // Before the hook that rejects unknown paths and methods, so that those responses have CORS headers, too.
  if (options.corsOrigin.length > 0) allowOrigins(app, crossOrigin)
  refuseUndecodable(app, badUrl)
  refuseOtherMethods(app)
  serveOpenapi(app, options.about)
  // Relative redirect: a proxy may serve this app under a prefix.
  if (options.servesRoot ?? true) app.get('/', hiddenRoute, (_request, reply) => reply.redirect('docs'))
  if (metrics) serveMetrics(app, metrics)
  serveHealth(app, options.about.version, options.health)
  await routes(app)
  return app
}

function createServer(
  options: AppOptions,
  parts: { limits: ConnectionLimits; accessLog: AccessLog; crossOrigin: CrossOriginHeaders; badUrl: () => HttpError },
): App {
  const { limits, accessLog, crossOrigin, badUrl } = parts
  const app: App = Fastify<RawServerDefault, IncomingMessage, ServerResponse, FastifyBaseLogger>({
    schemaController: { compilersFactory: zodCompilers },
    loggerInstance: options.log,
    logController: accessLog,
    trustProxy: options.trustProxy,
    bodyLimit: smallBody,
    // No limit: recovery after a crash can exceed the framework's default of ten seconds.
    pluginTimeout: 0,
    http: {
      ...parserOptions,
      headersTimeout: limits.headersTimeoutMs,
      connectionsCheckingInterval: Math.ceil(limits.headersTimeoutMs / 4),
    },
    forceCloseConnections: 'idle',
    // While stopping, a request on an open connection is still served; the connection closes after it.
    return503OnClosing: false,
    requestIdHeader: false,
    genReqId: requestIdOf,
    routerOptions: { maxParamLength },
    frameworkErrors: (error, request, reply) => {
      reply.headers({ 'x-request-id': request.id, ...crossOrigin(request.raw) })
      return answerError(error.code === 'FST_ERR_BAD_URL' ? badUrl() : error, request, reply)
    },
    clientErrorHandler: (error, socket) => answerSocketError(error, socket, crossOrigin),
  }).withTypeProvider<ZodTypeProvider>()
  app.setErrorHandler(answerError)
  return app
}

const exposedHeaders =
  'age, content-disposition, etag, link, location, preference-applied, ratelimit, ratelimit-policy, retry-after, warning, ' +
  'www-authenticate, x-request-id'
