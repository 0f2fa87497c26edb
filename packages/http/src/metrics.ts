import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { collectDefaultMetrics, Histogram, Registry } from 'prom-client'
import { z } from 'zod'
import { HttpError } from './problem.ts'

/** A registry with what Node tells of itself; the parts of a service add their own figures to it. */
export function createMetrics(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return registry
}

/** GET /metrics (Prometheus text) for who has the token, and a histogram of all requests. Without a token: nothing. */
export function serveMetrics(app: FastifyInstance, registry: Registry, token: string) {
  const duration = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time to answer, by method, route and status',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [registry],
  })
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'unmatched'
    duration.observe(
      { method: request.method, route, status: reply.statusCode },
      reply.elapsedTime / 1000,
    )
  })

  const wanted = digest(`Bearer ${token}`)
  app.get(
    '/metrics',
    {
      schema: {
        operationId: 'getMetrics',
        summary: 'Figures for Prometheus',
        description:
          'There while METRICS_TOKEN is set, for who sends it as bearer token; a token of a login does not count.',
        tags: ['operations'],
        security: [{ metrics_token: [] }],
        produces: ['text/plain'],
        failures: [tokenWanted('Bearer')],
        answers: { 200: { description: 'The figures, in the text format of Prometheus' } },
        response: {
          200: z.string().meta({ examples: ['# TYPE process_start_time_seconds gauge\n'] }),
        },
      },
      config: { access: 'public' } as object, // It has a token of its own.
      serializerCompiler: () => String,
    },
    async (request, reply) => {
      const sent = request.headers.authorization
      if (!timingSafeEqual(digest(sent?.replace(/^bearer /i, 'Bearer ') ?? ''), wanted)) {
        throw tokenWanted(sent ? 'Bearer error="invalid_token"' : 'Bearer')
      }
      return reply.type(registry.contentType).send(await registry.metrics())
    },
  )
}

const tokenWanted = (challenge: string) =>
  new HttpError(401, 'unauthorized', 'Send METRICS_TOKEN as bearer token', {
    headers: { 'www-authenticate': challenge },
  })

const digest = (text: string) => createHash('sha256').update(text).digest()
