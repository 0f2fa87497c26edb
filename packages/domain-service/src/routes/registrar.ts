import { type App, answers, operations } from '@domains-and-files/http'
import { z } from 'zod'
import type { Dependencies } from '../storage.ts'

const RegistrarState = z
  .object({
    registrar: z.string().meta({ description: 'host of REGISTRAR_URL, or `sandbox`', examples: ['sandbox'] }),
    client_ip: z.ipv4().meta({
      description: 'REGISTRAR_CLIENT_IP: the address to whitelist at the registrar',
      examples: ['192.0.2.7'],
    }),
    breaker: z
      .enum(['closed', 'open', 'half_open'])
      .describe('open: calls pause for seconds after several failures in a row'),
    budget: z.array(
      z.object({
        window: z.enum(['minute', 'hour', 'day']),
        limit: z.int().meta({ examples: [20] }),
        left: z.int().meta({ examples: [17] }),
        next_free_at: z.iso.datetime().nullable().describe('when the oldest counted call leaves the window'),
      }),
    ),
    calls: z
      .array(
        z.object({
          from: z.iso.datetime(),
          calls: z.int(),
          reads: z.int().describe('of these, for readers and for reading ahead'),
        }),
      )
      .describe('made in each of the last 24 hours, oldest first'),
    calls_waiting: z.int().describe('calls and write rounds that wait for slots'),
    domain_list: z
      .object({
        domains: z.int().nullable().describe('null: not read yet'),
        read_at: z.iso.datetime().nullable(),
        is_reading: z.boolean(),
        pages_read: z.int().describe('of the reading under way'),
        pages: z.int().nullable(),
      })
      .describe("the account's list of domains, as kept here"),
    sweep: z
      .object({
        interval_s: z.int().meta({ description: 'DRIFT_INTERVAL_S; 0: off', examples: [21_600] }),
        is_active: z.boolean().describe('whether this replica sweeps'),
        domains: z.int().describe("on the registrar's DNS"),
        seen: z.int().describe('of these, seen within the interval'),
      })
      .describe('reading for changes that were made outside'),
    last_success_at: z.iso.datetime().nullable(),
    last_failure: z.nullable(z.object({ at: z.iso.datetime(), code: z.string() })).meta({ examples: [null] }),
  })
  .meta({ id: 'RegistrarState' })

const { getRegistrar } = operations({
  shared: { access: 'admin', tags: ['operations'] },
  getRegistrar: {
    summary: 'The registrar: calls left, last failure',
    description: 'From the calls made so far; it makes none itself.',
    ...answers(200, 'The state of the account behind this service', RegistrarState),
  },
})

/** GET /api/registrar: the state of the account behind the service, for operators; it makes no call. */
export function registerRegistrarRoutes(app: App, { config, registrar, domains, sweep }: Dependencies) {
  const { quota } = registrar
  app.get('/api/registrar', getRegistrar, async () => ({
    registrar: config.account.registrar,
    ...registrar.state(),
    budget: quota.windows.state(quota.now()).map(({ window, limit, left, nextFreeAt }) => ({
      window,
      limit,
      left,
      next_free_at: nextFreeAt === undefined ? null : new Date(nextFreeAt).toISOString(),
    })),
    calls: quota.windows.hours(quota.now()).map((hour) => ({ ...hour, from: new Date(hour.from).toISOString() })),
    domain_list: domains.state(),
    sweep: await sweep.state(),
  }))
}
