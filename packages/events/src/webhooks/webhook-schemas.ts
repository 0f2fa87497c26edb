import { Domains, Folders } from '@domains-and-files/auth'
import { listSchema } from '@domains-and-files/http'
import { z } from 'zod'
import type { EventSource } from '../event-source.ts'

export const exampleId = '6a1f4e0e-2f5e-4b52-8a1e-9c7d3f0b5a21'
export const eventId = '01KEZ5H3C0000ABCDEFGHJKMNP'

export const DeliveryRecord = z
  .object({
    id: z.string().meta({ description: 'of the event' }),
    type: z.string(),
    status: z.enum(['pending', 'delivered', 'failed']),
    tries: z.int(),
    at: z.iso.datetime().meta({ description: 'of the last try' }),
    next_at: z.iso.datetime().nullable().meta({ description: 'of the next try; null: none' }),
    ms: z.int().meta({ description: 'duration of the last try' }),
    response_status: z.int().nullable().meta({ description: 'null: no response' }),
    answer: z
      .string()
      .nullable()
      .meta({ description: 'the first KiB of the response, or why there is none' }),
  })
  .meta({
    id: 'Delivery',
    examples: [
      {
        ...{ id: eventId, type: 'webhook.test', status: 'delivered', tries: 1 },
        ...{ at: '2027-01-15T09:30:01.000Z', next_at: null, ms: 84, response_status: 204 },
        answer: '',
      },
    ],
  })

type Schemas = ReturnType<typeof schemasOf>
/** A webhook as an admin defines it. Absent lists mean all types, domains or folders. */
export type WebhookDefinition = z.infer<Schemas['New']>
export type WebhookChanges = z.infer<Schemas['Changes']>

/** The schemas of webhooks, which a service limits to its domains or folders. */
export function schemasOf({ types, scope }: EventSource) {
  const limits = { domains: Domains.optional(), folders: Folders.optional() }
  const limit = limits[scope].meta({
    description: `only events about these ${scope}; default: all`,
  })
  const New = z.strictObject({
    url: z.string().max(2_000).meta({ description: 'https, without a password in it' }),
    name: z.string().min(1).max(100).optional(),
    types: z.array(z.enum(types)).min(1).optional().meta({ description: 'default: all' }),
    ...({ [scope]: limit } as typeof limits), // One of them.
  })
  const orAll = z.array(z.string()).nullable().meta({ description: 'null: all' })
  const Shown = z.object({
    id: z.string(),
    url: z.string(),
    name: z.string().nullable(),
    types: orAll,
    ...({ [scope]: orAll } as Record<never, typeof orAll>),
    paused: z.boolean().meta({ description: 'events are kept for it, 30 days at most' }),
    created_at: z.iso.datetime(),
    created_by: z.string(),
  })
  const secret = z.string().meta({ description: 'signs the deliveries; shown only now' })
  const example = { url: 'https://hooks.example.com/changes', name: 'chat', types: [types[0]] }
  const shown = {
    ...{ id: exampleId, ...example, [scope]: null, paused: false },
    ...{ created_at: '2027-01-15T09:30:00.000Z', created_by: 'admin' },
  }
  const created = { ...shown, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' }
  const Webhook = Shown.meta({ id: 'Webhook', examples: [shown] })
  return {
    New: New.meta({ id: 'NewWebhook', examples: [example] }),
    Changes: New.partial({ url: true })
      .extend({ paused: z.boolean().optional() })
      .meta({ id: 'WebhookChanges', examples: [{ paused: true }] }),
    Shown: Webhook,
    Created: Shown.extend({ secret }).meta({ id: 'CreatedWebhook', examples: [created] }),
    List: listSchema('WebhookList', 'webhooks', Webhook),
  }
}
