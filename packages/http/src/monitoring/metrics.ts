import { createHash, timingSafeEqual } from 'node:crypto'
import { statfs } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { z } from 'zod'
import { HttpError } from '../problem-details.ts'

/** A registry with the process metrics of Node; services register their own. */
export function createMetrics(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return registry
}

/** A Prometheus metric, and the label of its series if it has several. */
interface Metric {
  name: string
  help: string
  label?: string
}

type Figures = number | Record<string, number>

type Read = () => Figures | Promise<Figures>

/** A gauge that is read on each scrape; `NaN` if that fails, so that one failure hides no other metric. */
export function registerGauge(registry: Registry, { name, help, label }: Metric, read: Read) {
  new Gauge({
    name,
    help,
    labelNames: label ? [label] : [],
    registers: [registry],
    async collect() {
      for (const [labels, value] of await readAll(read, label)) this.set(labels, value)
    },
  })
}

/** A counter that is kept elsewhere and read on each scrape. */
export function registerCounter(registry: Registry, { name, help, label }: Metric, read: Read) {
  new Counter({
    name,
    help,
    labelNames: label ? [label] : [],
    registers: [registry],
    async collect() {
      this.reset()
      for (const [labels, value] of await readAll(read, label)) this.inc(labels, value)
    },
  })
}

/** Size and free space of the disk that holds this directory. */
export function registerDiskGauges(registry: Registry, folder: string) {
  registerGauge(
    registry,
    { name: 'data_disk_size_bytes', help: 'Size of the disk that holds DATA_DIR' },
    async () => {
      const { blocks, bsize } = await statfs(folder)
      return blocks * bsize
    },
  )
  registerGauge(
    registry,
    { name: 'data_disk_free_bytes', help: 'Free space on it for this service' },
    async () => {
      const { bavail, bsize } = await statfs(folder)
      return bavail * bsize
    },
  )
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
  readonly #duration: Histogram
  readonly #problems: Counter

  /** `alarming` codes are exported from the start, at 0: Prometheus sees increases, not first appearances. */
  constructor(registry: Registry, alarming: string[] = []) {
    this.#duration = new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Response time by method, route and status',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers: [registry],
    })
    this.#problems = new Counter({
      name: 'http_problems_total',
      help: 'Error responses by code',
      labelNames: ['code'],
      registers: [registry],
    })
    for (const code of ['internal_error', ...alarming]) this.#problems.inc({ code }, 0)
  }

  observe(labels: { method: string; route: string; status: number }, ms: number) {
    this.#duration.observe(labels, ms / 1000)
  }

  countProblem(code: string) {
    this.#problems.inc({ code })
  }
}

interface Metrics {
  registry: Registry
  token: string
  requests: RequestMetrics
}

/** GET /metrics (Prometheus text) for clients with the token; observes every request of the framework. */
export function serveMetrics(app: FastifyInstance, { registry, token, requests }: Metrics) {
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unmatched'
    requests.observe({ method: request.method, route, status: reply.statusCode }, reply.elapsedTime)
    if (reply.problemCode) requests.countProblem(reply.problemCode)
    done()
  })

  const expected = digest(`Bearer ${token}`)
  app.get(
    '/metrics',
    {
      schema: {
        operationId: 'getMetrics',
        summary: 'Prometheus metrics',
        description:
          'Served while METRICS_TOKEN is set, to clients that send it as bearer token. Login and API tokens are rejected.',
        tags: ['operations'],
        security: [{ metrics_token: [] }],
        produces: ['text/plain'],
        errors: [metricsTokenRequired('Bearer')],
        responses: { 200: { description: 'Metrics in the Prometheus text format' } },
        response: {
          200: z.string().meta({ examples: ['# TYPE process_start_time_seconds gauge\n'] }),
        },
      },
      config: { access: 'public' }, // It has a token of its own.
      serializerCompiler: () => String,
    },
    async (request, reply) => {
      const sent = request.headers.authorization
      if (!timingSafeEqual(digest(sent?.replace(/^bearer /i, 'Bearer ') ?? ''), expected)) {
        throw metricsTokenRequired(sent ? 'Bearer error="invalid_token"' : 'Bearer')
      }
      return reply.type(registry.contentType).send(await registry.metrics())
    },
  )
}

const metricsTokenRequired = (challenge: string) =>
  new HttpError(401, 'unauthorized', 'Send METRICS_TOKEN as bearer token', {
    headers: { 'www-authenticate': challenge },
  })

const digest = (text: string) => createHash('sha256').update(text).digest()
