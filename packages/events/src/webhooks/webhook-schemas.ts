import { Domains, Folders } from '@domains-and-files/auth'
import { z } from 'zod'
import { EventId, type EventSource } from '../event-source.ts'

export const exampleId = '6a1f4e0e-2f5e-4b52-8a1e-9c7d3f0b5a21'

/** Event type of POST …/test. */
export const testType = 'webhook.test'

export const DeliveryRecord = z
  .object({
    id: EventId.meta({ description: 'of the event' }),
    type: z.string().meta({ examples: [testType] }),
    status: z.enum(['delivered', 'pending', 'failed']),
    tries: z.int(),
    at: z.iso.datetime().meta({ description: 'of the last try' }),
    next_at: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'of the next; null: none', examples: [null] }),
    ms: z.int().meta({ description: 'duration of the last try', examples: [84] }),
    response_status: z
      .int()
      .nullable()
      .meta({ description: 'null: no response', examples: [200] }),
    answer: z
      .string()
      .nullable()
      .meta({ description: 'the first KiB of the response, or why there is none' }),
  })
  .meta({ id: 'Delivery' })

type Schemas = ReturnType<typeof schemasOf>
/** A webhook as an admin defines it. Absent lists mean all types, domains or folders. */
export type WebhookDefinition = z.infer<Schemas['New']>
export type WebhookChanges = z.infer<Schemas['Changes']>

/** The schemas of webhooks, which a service limits to its domains or folders. */
export function schemasOf({ types, scope }: EventSource) {
  const description = `only events about these ${scope}; default: all`
  const limits = { domains: Domains.optional(), folders: Folders.optional() }
  const url = z.string().meta({ examples: ['https://hooks.example.com/changes'] })
  const New = z.strictObject({
    url: url.max(2_000).meta({ description: 'https, without a password in it' }),
    name: z.string().min(1).max(100).optional(),
    types: z.array(z.enum(types)).min(1).optional().meta({ description: 'default: all' }),
    ...({ [scope]: limits[scope].meta({ description }) } as typeof limits), // One of them.
  })
  const orAll = z
    .array(z.string())
    .nullable()
    .meta({ description: 'null: all', examples: [null] })
  const Shown = z.object({
    id: z.string().meta({ examples: [exampleId] }),
    url,
    name: z.nullable(z.string()).meta({ examples: ['chat'] }),
    types: orAll,
    ...({ [scope]: orAll } as Record<never, typeof orAll>),
    paused: z.boolean().meta({ description: 'events wait, 30 days at most', examples: [false] }),
    created_at: z.iso.datetime(),
    created_by: z.string().meta({ examples: ['admin'] }),
  })
  const secret = z.string().meta({
    description: 'signs the deliveries; shown only now',
    examples: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
  })
  return {
    New: New.meta({ id: 'NewWebhook' }),
    Changes: New.partial({ url: true })
      .extend({ paused: z.boolean().optional() })
      .meta({ id: 'WebhookChanges', examples: [{ paused: true }] }),
    Shown: Shown.meta({ id: 'Webhook' }),
    Created: Shown.extend({ secret }).meta({ id: 'CreatedWebhook' }),
  }
}
