import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { operations } from '../route-schema.ts'

const Status = z.enum(['ok', 'degraded', 'unavailable'])
const Check = z.looseObject({ status: Status })

export type Check = z.infer<typeof Check>

const Health = z
  .looseObject({
    status: Status.describe('degraded: a dependency of the service fails'),
    version: z.string().meta({ description: 'of the service', examples: ['0.1.0'] }),
    uptime_seconds: z.int().meta({ examples: [86_400] }),
    checks: z.record(z.string(), Check).meta({ description: 'by name', examples: [{ database: { status: 'ok' } }] }),
  })
  .meta({ id: 'Health' })

const { getHealth } = operations({
  shared: { access: 'public', tags: ['operations'] },
  getHealth: {
    summary: 'Does the service work?',
    description: 'Cheap and local: calls no other system. Each service adds fields of its own.',
    responses: {
      200: { description: 'It works, even if its status is `degraded`', body: Health },
      503: { description: 'Its database or its disk fails', body: Health },
    },
  },
})

/** The checks of a service, and further fields of its own. Checks are cheap, and call no other system. */
export interface HealthReport {
  checks: Record<string, Check>
  fields?: Record<string, unknown>
}

/** GET /health: 200 while the service works, even if `degraded`; 503 when it cannot. */
export function serveHealth(app: FastifyInstance, version: string, report: () => HealthReport) {
  app.get('/health', getHealth, async (_request, reply) => {
    const { checks, fields } = report()
    const found = Object.values(checks).map((check) => check.status)
    const status = (['unavailable', 'degraded'] as const).find((bad) => found.includes(bad)) ?? 'ok'
    return reply
      .code(status === 'unavailable' ? 503 : 200)
      .header('cache-control', 'no-store')
      .send({ status, version, uptime_seconds: Math.floor(process.uptime()), ...fields, checks })
  })
}
