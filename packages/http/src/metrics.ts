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
        summary: 'Figures for Prometheus',
        tags: ['operations'],
        response: {
          200: { description: 'the figures', content: { 'text/plain': { schema: z.string() } } },
        },
      },
      config: { access: 'public' } as object, // It has a token of its own.
      serializerCompiler: () => String,
    },
    async (request, reply) => {
      const sent = request.headers.authorization
      if (!timingSafeEqual(digest(sent?.replace(/^bearer /i, 'Bearer ') ?? ''), wanted)) {
        const challenge = sent ? 'Bearer error="invalid_token"' : 'Bearer'
        const headers = { 'www-authenticate': challenge }
        throw new HttpError(401, 'unauthorized', 'Send METRICS_TOKEN as bearer token', { headers })
      }
      return reply.type(registry.contentType).send(await registry.metrics())
    },
  )
}

const digest = (text: string) => createHash('sha256').update(text).digest()
