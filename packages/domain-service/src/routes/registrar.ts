import { type App, answers, type HeaderDoc, operations } from '@domains-and-files/http'
import { z } from 'zod'
import { windowMs } from '../budget/call-windows.ts'
import type { RegistrarClient } from '../registrar/client.ts'
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
        oldest_seen_at: z.iso.datetime().nullable().describe('null: one never'),
      })
      .describe('reading for changes that were made outside'),
    last_success_at: z.iso.datetime().nullable(),
    last_failure: z
      .object({ at: z.iso.datetime(), code: z.string() })
      .nullable()
      .meta({ examples: [null] }),
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

const rateLimitHeaders: Record<string, HeaderDoc> = {
  'ratelimit-policy': {
    description: "The registrar's limits for the whole account: quota (q) per window in seconds (w)",
    example: '"minute";q=20;w=60, "hour";q=700;w=3600, "day";q=8000;w=86400',
  },
  ratelimit: {
    description: 'Calls left (r) of each, and seconds until the next one is free (t)',
    example: '"minute";r=17;t=42, "hour";r=697;t=3582, "day";r=7997;t=86382',
  },
}

/**
 * Adds RateLimit-Policy and RateLimit to every answer of routes under /api/domains, errors included
 * (draft-ietf-httpapi-ratelimit-headers). Register it before these routes.
 */
export function addRateLimitHeaders(app: App, { quota }: RegistrarClient) {
  const policy = quota.windows
    .state(quota.now())
    .map(({ window, limit }) => `"${window}";q=${limit};w=${windowMs[window] / 1000}`)
    .join(', ')
  app.addHook('onRoute', (route) => {
    if (!route.url.startsWith('/api/domains')) return
    for (const response of Object.values(route.schema?.responses ?? {}))
      response.headers = { ...response.headers, ...rateLimitHeaders }
    route.onSend = [
      ...[route.onSend ?? []].flat(),
      (_request, reply, payload, done) => {
        const now = quota.now()
        const windows = quota.windows.state(now).map(({ window, left, nextFreeAt = now }) => {
          return `"${window}";r=${left};t=${Math.ceil((nextFreeAt - now) / 1000)}`
        })
        reply.header('ratelimit-policy', policy).header('ratelimit', windows.join(', '))
        done(null, payload)
      },
    ]
  })
}
