import { createHash, timingSafeEqual } from 'node:crypto'
import { statfs } from 'node:fs/promises'
import { type Postgres, readBackupTimes } from '@domains-and-files/persistence'
import type { Counter, Histogram, Registry } from '@prometheus-io/client'
import type { FastifyInstance } from 'fastify'
import { HttpError } from '../http-error.ts'
import { operations } from '../route-schema.ts'

export interface Metrics {
  client: typeof import('@prometheus-io/client')
  registry: Registry
  /** The present bearer token of GET /metrics. */
  token: () => string
}

/**
 * The metrics of a process, including Node's. Undefined without a token, since GET /metrics is off then: nothing is
 * counted, and the Prometheus client, a tenth of the start time, is not loaded.
 */
export async function createMetrics(token: string | (() => string) | undefined): Promise<Metrics | undefined> {
  if (!token) return undefined
  const client = await import('@prometheus-io/client')
  // Once for all services of a process: the client never stops the timers that measure it.
  if (!ofProcess) {
    ofProcess = new client.Registry()
    client.collectDefaultMetrics({ register: ofProcess })
  }
  const registry = client.Registry.merge([ofProcess])
  return { client, registry, token: typeof token === 'string' ? () => token : token }
}

let ofProcess: Registry | undefined

type Figures = number | Record<string, number>
type Read = () => Figures | Promise<Figures>

/** Metrics by name: the help text, the reader called on each scrape, and the label if there are several series. */
type Readings = Record<string, readonly [help: string, read: Read, label?: string]>

/** Registers gauges. A failed read gives `NaN`, so that it hides no other metric. */
export const registerGauges = (metrics: Metrics | undefined, readings: Readings) => register('Gauge', metrics, readings)

/** Registers counters whose values are counted elsewhere. */
export const registerCounters = (metrics: Metrics | undefined, readings: Readings) =>
  register('Counter', metrics, readings)

function register(kind: 'Gauge' | 'Counter', metrics: Metrics | undefined, readings: Readings) {
  if (!metrics) return
  for (const [name, [help, read, label]] of Object.entries(readings))
    new metrics.client[kind]({
      name,
      help,
      labelNames: label ? [label] : [],
      registers: [metrics.registry],
      async collect() {
        const found = await readAll(read, label)
        this.reset() // Not before the await: a concurrent scrape would add its values, too.
        for (const [labels, value] of found) this.inc(labels, value)
      },
    })
}

/** Size and free space of the disk that holds the data, and the times of the last backups. */
export function registerStorageGauges(
  metrics: Metrics | undefined,
  { dataDir: folder, backupDir }: { dataDir: string; backupDir?: string | undefined },
) {
  if (backupDir) registerBackupGauges(metrics, backupDir)
  const disk = async (figure: 'blocks' | 'bavail') => {
    const found = await statfs(folder)
    return found[figure] * found.bsize
  }
  registerGauges(metrics, {
    data_disk_size_bytes: ['Size of the disk that holds DATA_DIR', () => disk('blocks')],
    data_disk_free_bytes: ['Free space on it for this service', () => disk('bavail')],
  })
}

function registerBackupGauges(metrics: Metrics | undefined, folder: string) {
  const secondsOf = (which: 'made' | 'verified') => async () => (await readBackupTimes(folder))[which] / 1000
  registerGauges(metrics, {
    backup_last_success_timestamp_seconds: ['Begin of the last finished backup', secondsOf('made')],
    backup_last_verified_timestamp_seconds: ['Last check of every byte of a backup', secondsOf('verified')],
  })
}

/** Registers connections to PostgreSQL, and the last result of the probe. */
export function registerDatabaseMetrics(
  metrics: Metrics | undefined,
  postgres: Pick<Postgres, 'isAvailable' | 'pool'>,
) {
  const states = () => {
    const { total, idle } = postgres.pool
    return { idle, used: total - idle }
  }
  const waiting = 'Statements and transactions queued for a connection'
  registerGauges(metrics, {
    database_available: ['1 if PostgreSQL answered the last check, else 0', () => Number(postgres.isAvailable)],
    database_connections: ['Connections to PostgreSQL', states, 'state'],
    database_connections_waiting: [waiting, () => postgres.pool.waiting],
  })
}

async function readAll(read: Read, label = ''): Promise<[Record<string, string>, number][]> {
  try {
    const found = await read()
    if (typeof found === 'number') return [[{}, found]]
    return Object.entries(found).map(([key, value]) => [{ [label]: key }, value])
  } catch {
    return label ? [] : [[{}, Number.NaN]]
  }
}

/** A histogram of all requests, and a count of all problems by code. */
export class RequestMetrics {
  readonly #duration: Histogram<'method' | 'route' | 'status'>
  readonly #problems: Counter<'code'>

  /** `alarming` codes are exported as 0 from the start: Prometheus sees increases, not first appearances. */
  constructor({ client, registry }: Metrics, alarming: string[] = []) {
    this.#duration = new client.Histogram({
      name: 'http_request_duration_seconds',
      help: 'Response time by method, route and status',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers: [registry],
    })
    this.#problems = new client.Counter({
      name: 'http_problems_total',
      help: 'Error responses by code',
      labelNames: ['code'],
      registers: [registry],
    })
    for (const code of ['internal_error', ...alarming]) this.#problems.inc({ code }, 0)
  }

  /** Counts a response after `ms`; requests without a route share one label value, which bounds the number of series. */
  observe(
    { method, route = '*', status }: { method: string; route: string | undefined; status: number },
    ms: number,
    problemCode?: string,
  ) {
    this.#duration.observe({ method, route: route === '*' ? 'unmatched' : route, status }, ms / 1000)
    if (problemCode) this.#problems.inc({ code: problemCode })
  }
}

const metricsTokenRequired = (challenge: string) =>
  new HttpError(401, 'unauthorized', 'Send METRICS_TOKEN as bearer token', {
    headers: { 'www-authenticate': challenge },
  })

const { getMetrics } = operations({
  shared: { access: 'public', tags: ['operations'] }, // The handler checks METRICS_TOKEN.
  getMetrics: {
    summary: 'Prometheus metrics',
    description:
      'Served while METRICS_TOKEN is set, to clients that send it as bearer token. Login and API tokens are rejected.',
    security: [{ metrics_token: [] }],
    errors: [metricsTokenRequired('Bearer')],
    responses: {
      200: {
        description: 'Metrics in the Prometheus text format',
        content: 'text/plain',
        example: '# TYPE process_start_time_seconds gauge\n',
      },
    },
  },
})

/** GET /metrics (Prometheus text) for clients with the token. */
export function serveMetrics(app: FastifyInstance, { registry, token }: Metrics) {
  app.get('/metrics', getMetrics, async (request, reply) => {
    const sent = request.headers.authorization
    const expected = digest(`Bearer ${token()}`)
    if (!timingSafeEqual(digest(sent?.replace(/^bearer /i, 'Bearer ') ?? ''), expected)) {
      throw metricsTokenRequired(sent ? 'Bearer error="invalid_token"' : 'Bearer')
    }
    return reply.type(registry.contentType).send(await registry.metrics())
  })
}

const digest = (text: string) => createHash('sha256').update(text).digest()
