import { randomBytes, randomUUID } from 'node:crypto'
import { Domains, Folders } from '@domains-and-files/auth'
import { HttpError } from '@domains-and-files/http'
import {
  forUpdate,
  forUpdateSkipLocked,
  lockOf,
  name,
  now,
  type Sql,
  type SqlTransaction,
  sql,
} from '@domains-and-files/persistence'
import { z } from 'zod'
import { EventId } from '../event.ts'
import type { EventSource } from '../outbox.ts'

const webhooks = name('webhooks')
const deliveries = name('webhook_deliveries')
const isDue = sql`status = 'pending' and next_at <= ${now}`

export const maxWebhooks = 50
const keptDeliveries = 100
/** Milliseconds until a claim expires, also after an error: longer than a try takes. */
const claimMs = 15_000

/** Milliseconds between tries. A try after the last pause is final: if it fails, so does the delivery. */
export const retryDelaysMs = [5_000, 30_000, 120_000, 900_000, ...[1, 3, 6, 12, 24].map((hours) => hours * 3_600_000)]

export const exampleId = '6a1f4e0e-2f5e-4b52-8a1e-9c7d3f0b5a21'

/** Event type of POST …/test. */
export const testType = 'webhook.test'

export const DeliveryRecord = z
  .object({
    id: EventId.describe('of the event'),
    type: z.string().meta({ examples: [testType] }),
    status: z.enum(['delivered', 'pending', 'failed']),
    tries: z.int(),
    at: z.iso.datetime().describe('of the last try'),
    next_at: z.nullable(z.iso.datetime()).meta({ description: 'of the next; null: none', examples: [null] }),
    ms: z.int().meta({ description: 'duration of the last try', examples: [84] }),
    response_status: z.nullable(z.int()).meta({ description: 'null: no response', examples: [200] }),
    answer: z.string().nullable().describe('the first KiB of the response, or why there is none'),
  })
  .meta({ id: 'Delivery' })

export type Schemas = ReturnType<typeof schemasOf>
/** A webhook as an admin defines it. Absent lists mean all types, domains or folders. */
export type WebhookDefinition = z.infer<Schemas['New']>
export type WebhookChanges = z.infer<Schemas['Changes']>

/** The schemas of webhooks, which a service limits to its domains or folders. */
export function schemasOf({ types, scope }: EventSource) {
  const description = `only events about these ${scope}; default: all`
  const limits = { domains: Domains.optional(), folders: Folders.optional() }
  const url = z.string().meta({ examples: ['https://hooks.example.com/changes'] })
  const New = z.strictObject({
    url: url.max(2_000).describe('https, without a password in it'),
    name: z.string().min(1).max(100).optional(),
    types: z.array(z.enum(types)).min(1).optional().describe('default: all'),
    ...({ [scope]: limits[scope].meta({ description }) } as typeof limits), // One of them.
  })
  const orAll = z.nullable(z.array(z.string())).meta({ description: 'null: all', examples: [null] })
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

/** Times are milliseconds since 1970. */
interface WebhookRow {
  id: string
  definition: string
  secret: string
  created_at: number
  created_by: string
  is_paused: number
  /** Events up to here have been delivered, or are in its deliveries. */
  position: string
  /** Of the process that alone delivers to it. */
  claim: string | null
}

// Cast: only `create` and `update` write definitions.
const toWebhook = ({ definition, is_paused, ...row }: WebhookRow) => ({
  ...(JSON.parse(definition) as WebhookDefinition),
  ...row,
  paused: is_paused === 1,
})

export type Webhook = ReturnType<typeof toWebhook>

/** Times are milliseconds since 1970. */
export type Delivery = Omit<z.infer<typeof DeliveryRecord>, 'id' | 'at' | 'next_at'> & {
  event: string
  at: number
  next_at: number
}

/** Outcome of one try. */
export interface Attempt {
  /** Null: no response. */
  status: number | null
  ms: number
  /** The beginning of the response's body, or why there is none. */
  answer: string
}

/** A completed try, after `tries` earlier ones. */
type EndedTry = Pick<Delivery, 'event' | 'type' | 'tries'> & { attempt: Attempt }

/** Stores webhooks, their queues and their last deliveries. */
export class WebhookStore {
  readonly #sql: Sql
  /** Whether other processes change webhooks, too. */
  readonly isShared: boolean
  /** Called after each attempt of this process to create or change a webhook. */
  onChange = () => {}

  constructor(database: Sql) {
    this.#sql = database
    this.isShared = database.dialect === 'postgres'
  }

  /** Oldest first. */
  async list(): Promise<Webhook[]> {
    return (await this.#sql.all<WebhookRow>(sql`select * from ${webhooks} order by created_at, id`)).map(toWebhook)
  }

  /** Creates a webhook, which gets the events after `position`. @throws 409 `too_many_webhooks` */
  create(definition: WebhookDefinition, by: { createdBy: string; position: string }): Promise<Webhook> {
    const secret = `whsec_${randomBytes(32).toString('base64')}`
    return this.#change(async (transaction) => {
      // Serialized, so that concurrent creations cannot exceed the limit.
      await transaction.get(lockOf('webhooks'))
      const row = await transaction.get<WebhookRow>(sql`
        insert into ${webhooks} (id, definition, secret, created_at, created_by, position)
        values (${randomUUID()}, ${JSON.stringify(definition)}, ${secret}, ${now}, ${by.createdBy}, ${by.position})
        returning *`)
      const all = await transaction.all(sql`select id from ${webhooks}`)
      if (!row || all.length > maxWebhooks) throw tooManyWebhooks()
      return toWebhook(row)
    })
  }

  /** Changes a webhook; a running delivery then ends, and is repeated as it is now. @throws 404 `webhook_not_found` */
  update(id: string, { paused, ...changes }: WebhookChanges): Promise<Webhook> {
    return this.#change(async (transaction) => {
      const before = await transaction.get<WebhookRow>(sql`select * from ${webhooks} where id = ${id} ${forUpdate}`)
      const definition = JSON.stringify({ ...JSON.parse(before?.definition ?? '{}'), ...changes })
      const row = await transaction.get<WebhookRow>(sql`update ${webhooks} set definition = ${definition},
          claim = case when definition = ${definition} then claim end,
          claimed_until = case when definition = ${definition} then claimed_until else 0 end,
          is_paused = coalesce(${paused}, is_paused)
        where id = ${id} returning *`)
      if (!row) throw webhookNotFound(id)
      return toWebhook(row)
    })
  }

  #change<T>(work: (transaction: SqlTransaction) => Promise<T>): Promise<T> {
    return this.#sql.transaction(work).finally(() => this.onChange())
  }

  async remove(id: string): Promise<void> {
    await this.#sql.run(sql`delete from ${webhooks} where id = ${id}`)
  }

  /** Newest first. */
  deliveries(id: string): Promise<Delivery[]> {
    return this.#sql.all(
      sql`select * from ${deliveries} where webhook = ${id} order by at desc, event desc limit ${keptDeliveries}`,
    )
  }

  /** Delivers an event again, with all its tries. @throws 404 `delivery_not_found` */
  async retry(id: string, event: string): Promise<Delivery> {
    const delivery = await this.#sql.get<Delivery>(sql`
      update ${deliveries} set status = 'pending', tries = 0, next_at = ${now}
      where webhook = ${id} and event = ${event} returning *`)
    if (!delivery) throw deliveryNotFound(event)
    return delivery
  }

  /**
   * Claims for 15 s a webhook with undelivered events up to `end`, or with a due retry, that no process has claimed and
   * that is not paused. Undefined if there is none.
   */
  async claim(end: string): Promise<Webhook | undefined> {
    const claimable = sql`select id from ${webhooks} as found where is_paused = 0 and claimed_until <= ${now}
      and (position < ${end} or exists (select 1 from ${deliveries} where webhook = found.id and ${isDue})) limit 1`
    // Called twice a second: mostly there is none, and a read is cheaper than a transaction.
    if (!(await this.#sql.get(claimable))) return undefined
    const row = await this.#sql.get<WebhookRow>(sql`update ${webhooks}
      set claim = ${randomUUID()}, claimed_until = ${now} + ${claimMs}
      where id = (${claimable} ${forUpdateSkipLocked}) returning *`)
    return row && toWebhook(row)
  }

  dueDelivery({ id }: Webhook): Promise<Delivery | undefined> {
    return this.#sql.get(sql`select * from ${deliveries}
      where webhook = ${id} and ${isDue} order by next_at, event limit 1`)
  }

  async release({ id, claim }: Webhook, position: string): Promise<void> {
    await this.#sql.run(sql`update ${webhooks} set claim = null, claimed_until = 0,
      position = case when position < ${position} then ${position} else position end
      where id = ${id} and claim = ${claim}`)
  }

  /**
   * Records a try, and renews the claim. A response 410 pauses the webhook.
   * @returns false if the webhook is paused, removed, or claimed by another process, which then repeats the delivery.
   */
  record({ id, claim }: Webhook, ended: EndedTry): Promise<boolean> {
    const { event, type, attempt } = ended
    // The id of a test is not in the order of events.
    const delivered = type === testType ? '' : event
    return this.#sql.transaction(async (transaction) => {
      const row = await transaction.get<{ is_paused: number }>(sql`update ${webhooks}
        set claimed_until = ${now} + ${claimMs},
          is_paused = case when ${attempt.status === 410} = 1 then 1 else is_paused end,
          position = case when position < ${delivered} then ${delivered} else position end
        where id = ${id} and claim = ${claim} returning is_paused`)
      if (row) await store(transaction, id, ended)
      return row?.is_paused === 0
    })
  }

  /** Records the try of a test event, which is never retried automatically. */
  recordTest(id: string, ended: Omit<EndedTry, 'type' | 'tries'>): Promise<Delivery> {
    return this.#sql.transaction((transaction) => store(transaction, id, { type: testType, tries: 0, ...ended }))
  }
}

async function store(
  transaction: SqlTransaction,
  id: string,
  { event, type, tries, attempt: { status, ms, answer } }: EndedTry,
): Promise<Delivery> {
  const isDelivered = status !== null && status >= 200 && status < 300
  const pause = type === testType ? undefined : retryDelaysMs[tries]
  const state = isDelivered ? 'delivered' : pause === undefined ? 'failed' : 'pending'
  // Jitter, up to a fifth later and never earlier: avoids synchronized retries.
  const pauseMs = Math.round((pause ?? 0) * (1 + Math.random() / 5))
  // Not replaced by a new row: a concurrent `retry` would find none.
  const delivery = await transaction.get<Delivery>(sql`insert into ${deliveries}
      (webhook, event, type, status, tries, next_at, at, ms, response_status, answer)
    values (${id}, ${event}, ${type}, ${state}, ${tries + 1}, ${now} + ${pauseMs}, ${now}, ${ms}, ${status}, ${answer.replaceAll('\0', '')})
    on conflict (webhook, event) do update set status = excluded.status, tries = excluded.tries,
      next_at = excluded.next_at, at = excluded.at, ms = excluded.ms, response_status = excluded.response_status, answer = excluded.answer
    returning *`)
  if (!delivery) throw new Error('a stored delivery has no row')
  await transaction.run(sql`delete from ${deliveries} where webhook = ${id} and status <> 'pending' and event in
    (select event from ${deliveries} where webhook = ${id} and status <> 'pending' order by at desc, event desc limit 1000 offset ${keptDeliveries})`)
  return delivery
}

export const webhookNotFound = (id: string) => new HttpError(404, 'webhook_not_found', `There is no webhook ${id}`)

export const deliveryNotFound = (id: string) =>
  new HttpError(404, 'delivery_not_found', `The last deliveries have none of the event ${id}`)

export const tooManyWebhooks = () =>
  new HttpError(409, 'too_many_webhooks', `There are ${maxWebhooks} webhooks: delete one first`)
