export { type Clock, delay, slices, systemClock, type Timer } from '@domains-and-files/persistence'
export type { Histogram } from '@prometheus-io/client'
export { type App, type AppOptions, createApp } from './create-app.ts'
export * from './http-error.ts'
export { AttemptLimit, clientNetwork, tooManyFailures } from './limits/attempt-limit.ts'
export { hasBody } from './limits/connections.ts'
export { bodyChunks, limitValues, refuseContentCoding, takeBodies, textOf } from './limits/request-bodies.ts'
export { createLogger, type Logger } from './logging/logger.ts'
export type { Check, HealthReport } from './monitoring/health.ts'
export {
  createMetrics,
  type Metrics,
  registerCounters,
  registerDatabaseMetrics,
  registerGauges,
  registerStorageGauges,
} from './monitoring/metrics.ts'
export * from './pagination.ts'
export { databaseProblem, Problem, problemOf, requestProblem } from './problem-details.ts'
export * from './requests/entity-tags.ts'
export {
  type PreparedHead,
  prepareHead,
  type RawBody,
  type RawResponse,
  type RawRoute,
} from './requests/raw-route.ts'
export { clientAddressReader, forwardingCheck, isDecodable, methodNotAllowed } from './requests/request-head.ts'
export { describeIssue, parseInput, pointerTo, toFaults, uncheckedJson } from './requests/validation.ts'
export { type Access, answers, type HeaderDoc, operations } from './route-schema.ts'
export * from './settings.ts'
export { StartRefusedError, startService } from './start-service.ts'
