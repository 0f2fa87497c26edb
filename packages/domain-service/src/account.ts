import type { App } from '@house/http'
import { z } from 'zod'
import type { Registrar } from './registrar.ts'

const RegistrarState = z
  .object({
    breaker: z.enum(['closed', 'open', 'half_open']),
    budget: z.array(
      z.object({
        window: z.enum(['minute', 'hour', 'day']),
        limit: z.int(),
        left: z.int(),
        next_free_at: z.iso
          .datetime()
          .nullable()
          .meta({ description: 'when the oldest counted call is free again' }),
      }),
    ),
    last_success_at: z.iso.datetime().nullable(),
    last_failure: z.object({ at: z.iso.datetime(), code: z.string() }).nullable(),
  })
  .meta({ id: 'RegistrarState' })

/** GET /api/registrar: what an operator wants to know of the account behind the service, without asking it. */
export function serveAccount(app: App, registrar: Registrar) {
  app.get(
    '/api/registrar',
    {
      config: { access: 'admin' },
      schema: {
        summary: 'The registrar: calls left, last failure',
        tags: ['operations'],
        response: { 200: RegistrarState },
      },
    },
    async () => {
      const { breaker, budget, lastSuccess, lastFailure } = registrar.state()
      return {
        breaker,
        budget: budget.map(({ nextFreeAt, ...rest }) => ({
          ...rest,
          next_free_at: nextFreeAt?.toISOString() ?? null,
        })),
        last_success_at: lastSuccess?.toISOString() ?? null,
        last_failure: lastFailure
          ? { at: lastFailure.at.toISOString(), code: lastFailure.code }
          : null,
      }
    },
  )
}
