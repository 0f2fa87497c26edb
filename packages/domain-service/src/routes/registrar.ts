import type { App } from '@domains-and-files/http'
import { z } from 'zod'
import type { RegistrarClient } from '../registrar/client.ts'

const RegistrarState = z
  .object({
    breaker: z
      .enum(['closed', 'open', 'half_open'])
      .meta({ description: 'open: no calls are made for a while, since several failed in a row' }),
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
  .meta({
    id: 'RegistrarState',
    examples: [
      {
        breaker: 'closed',
        budget: [
          { window: 'minute', limit: 20, left: 17, next_free_at: '2027-01-15T09:31:00.000Z' },
          { window: 'hour', limit: 700, left: 697, next_free_at: '2027-01-15T10:30:00.000Z' },
          { window: 'day', limit: 8000, left: 7997, next_free_at: '2027-01-16T09:30:00.000Z' },
        ],
        last_success_at: '2027-01-15T09:30:02.000Z',
        last_failure: null,
      },
    ],
  })

/** GET /api/registrar: what an operator wants to know of the account behind the service, without asking it. */
export function registerRegistrarRoutes(app: App, registrar: RegistrarClient) {
  app.get(
    '/api/registrar',
    {
      config: { access: 'admin' },
      schema: {
        operationId: 'getRegistrar',
        summary: 'The registrar: calls left, last failure',
        description: 'What the last calls told; it makes none itself.',
        tags: ['operations'],
        responses: { 200: { description: 'The state of the account behind this service' } },
        response: { 200: RegistrarState },
      },
    },
    async () => {
      const { breaker, windows, lastSuccess, lastFailure } = registrar.state()
      return {
        breaker,
        budget: windows.map(({ nextFreeAt, ...rest }) => ({
          ...rest,
          next_free_at: nextFreeAt === undefined ? null : new Date(nextFreeAt).toISOString(),
        })),
        last_success_at: lastSuccess?.toISOString() ?? null,
        last_failure: lastFailure
          ? { at: lastFailure.at.toISOString(), code: lastFailure.code }
          : null,
      }
    },
  )
}
