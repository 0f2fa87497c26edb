import { randomBytes, randomUUID } from 'node:crypto'
import { HttpError } from '@domains-and-files/http'
import {
  forUpdate,
  forUpdateSkipLocked,
  name,
  now,
  type Sql,
  sql,
} from '@domains-and-files/persistence'
import type { Attempt } from './send-delivery.ts'

const webhooks = name('webhooks')
const deliveries = name('webhook_deliveries')

export const maxWebhooks = 50
const keptDeliveries = 100
/** Longer than a try takes. */
const claimMs = 30_000

const minuteMs = 60_000
const hourMs = 60 * minuteMs
/** Pauses after failed tries; after the last one the delivery has failed. */
export const retryDelaysMs = [
  ...[5_000, 30_000, 2 * minuteMs, 15 * minuteMs],
  ...[1, 3, 6, 12, 24].map((hours) => hours * hourMs),
]

/** What an admin says of a webhook. Absent: all types, domains or folders. */
export interface WebhookDefinition {
  url: string
  name?: string | undefined
  types?: string[] | undefined
  domains?: string[] | undefined
  folders?: string[] | undefined
}

export interface Webhook extends WebhookDefinition {
  id: string
  secret: string
  createdAt: number
  createdBy: string
  isPaused: boolean
  position: string
}

export interface Delivery {
  event: string
  type: string
  status: 'pending' | 'delivered' | 'failed'
  tries: number
  next_at: number
  at: number
  ms: number
  response_status: number | null
  answer: string | null
}

/** A webhook that this process delivers to, alone. */
export interface ClaimedWebhook extends Webhook {
  claim: string
}

interface WebhookRow {
  id: string
  definition: string
  secret: string
  created_at: number
  created_by: string
  is_paused: number
  position: string
}

/** The webhooks, their queues and their last deliveries. */
export class WebhookStore {
  readonly #sql: Sql

  constructor(database: Sql) {
    this.#sql = database
  }

  async list(): Promise<Webhook[]> {
    const rows = await this.#sql.all<WebhookRow>(
      sql`select * from ${webhooks} order by created_at, id`,
    )
    return rows.map(toWebhook)
  }

  /** @throws 404 `webhook_not_found` */
  async get(id: string): Promise<Webhook> {
    const row = await this.#sql.get<WebhookRow>(sql`select * from ${webhooks} where id = ${id}`)
    if (!row) throw webhookNotFound(id)
    return toWebhook(row)
  }

  /** It gets the events after `position`. @throws 409 `too_many_webhooks` */
  async create(
    definition: WebhookDefinition,
    { createdBy, position }: { createdBy: string; position: string },
  ): Promise<Webhook> {
    const id = randomUUID()
    const secret = `whsec_${randomBytes(32).toString('base64')}`
    await this.#sql.transaction(async (transaction) => {
      await transaction.run(sql`insert into ${webhooks} (id, definition, secret, created_at, created_by, position)
        values (${id}, ${JSON.stringify(definition)}, ${secret}, ${now}, ${createdBy}, ${position})`)
      const found = await transaction.get<{ count: number }>(
        sql`select count(*) count from ${webhooks}`,
      )
      if (Number(found?.count) > maxWebhooks) throw tooManyWebhooks()
    })
    return this.get(id)
  }

  /** @throws 404 `webhook_not_found` */
  async update(
    id: string,
    { isPaused, ...changes }: Partial<WebhookDefinition> & { isPaused?: boolean | undefined },
  ): Promise<Webhook> {
    await this.#sql.transaction(async (transaction) => {
      const row = await transaction.get<WebhookRow>(
        sql`select * from ${webhooks} where id = ${id} ${forUpdate}`,
      )
      if (!row) throw webhookNotFound(id)
      const definition = { ...JSON.parse(row.definition), ...changes }
      await transaction.run(sql`update ${webhooks} set definition = ${JSON.stringify(definition)},
        is_paused = coalesce(${isPaused}, is_paused) where id = ${id}`)
    })
    return this.get(id)
  }

  /** @throws 404 `webhook_not_found` */
  async remove(id: string): Promise<void> {
    const removed = await this.#sql.run(sql`delete from ${webhooks} where id = ${id}`)
    if (removed === 0) throw webhookNotFound(id)
  }

  /** Newest first. */
  deliveries(id: string): Promise<Delivery[]> {
    return this.#sql.all(
      sql`select * from ${deliveries} where webhook = ${id} order by at desc, event desc limit ${keptDeliveries}`,
    )
  }

  /** Delivers an event again, with all its tries. @throws 404 `delivery_not_found` */
  async retry(id: string, event: string): Promise<void> {
    const found =
      await this.#sql.run(sql`update ${deliveries} set status = 'pending', tries = 0, next_at = ${now}
      where webhook = ${id} and event = ${event}`)
    if (found === 0) throw deliveryNotFound(event)
  }

  /** Webhooks with something to deliver: events up to `end` that they have not got, or a try that is due. */
  async due(end: string): Promise<string[]> {
    const rows = await this.#sql.all<{ id: string }>(sql`select id from ${webhooks}
      where is_paused = 0 and claimed_until <= ${now} and (position < ${end} or exists
        (select 1 from ${deliveries} where webhook = webhooks.id and status = 'pending' and next_at <= ${now}))`)
    return rows.map(({ id }) => id)
  }

  /** Undefined where it is paused, or another process delivers to it. A process that ends loses its claim in 30 seconds. */
  async claim(id: string): Promise<ClaimedWebhook | undefined> {
    const claim = randomUUID()
    return this.#sql.transaction(async (transaction) => {
      const row = await transaction.get<WebhookRow>(sql`select * from ${webhooks}
        where id = ${id} and is_paused = 0 and claimed_until <= ${now} ${forUpdateSkipLocked}`)
      if (!row) return undefined
      await transaction.run(
        sql`update ${webhooks} set claim = ${claim}, claimed_until = ${now} + ${claimMs} where id = ${id}`,
      )
      return { ...toWebhook(row), claim }
    })
  }

  dueDelivery({ id }: Webhook): Promise<Delivery | undefined> {
    return this.#sql.get(sql`select * from ${deliveries}
      where webhook = ${id} and status = 'pending' and next_at <= ${now} order by next_at, event limit 1`)
  }

  /** Gives a claim back. */
  async release({ id, claim }: ClaimedWebhook, position: string): Promise<void> {
    await this.#sql.run(sql`update ${webhooks} set claim = null, claimed_until = 0,
      position = case when position < ${position} then ${position} else position end
      where id = ${id} and claim = ${claim}`)
  }

  /**
   * Records a try, and keeps the claim. A webhook that answered 410 is paused.
   * @returns false where the webhook is paused, removed, or claimed by another process, which repeats the delivery.
   */
  async record(
    { id, claim }: ClaimedWebhook,
    {
      event,
      type,
      tries,
      attempt,
    }: { event: string; type: string; tries: number; attempt: Attempt },
  ): Promise<boolean> {
    return this.#sql.transaction(async (transaction) => {
      const isGone = attempt.status === 410
      const row = await transaction.get<{ is_paused: number }>(sql`update ${webhooks}
        set claimed_until = ${now} + ${claimMs}, is_paused = case when ${isGone} = 1 then 1 else is_paused end,
          position = case when position < ${event} then ${event} else position end
        where id = ${id} and claim = ${claim} returning is_paused`)
      if (!row) return false
      await this.#store(transaction, { id, event, type, tries, attempt })
      return row.is_paused === 0
    })
  }

  /** Records a try that is not repeated by itself. */
  recordTest(id: string, { event, attempt }: { event: string; attempt: Attempt }): Promise<void> {
    return this.#sql.transaction((transaction) =>
      this.#store(transaction, { id, event, type: testType, tries: 0, attempt }),
    )
  }

  async #store(
    transaction: Pick<Sql, 'run'>,
    {
      id,
      event,
      type,
      tries,
      attempt,
    }: { id: string; event: string; type: string; tries: number; attempt: Attempt },
  ) {
    const { status, ms, answer } = attempt
    const isDelivered = status !== null && status >= 200 && status < 300
    const pause = type === testType ? undefined : retryDelaysMs[tries]
    const state = isDelivered ? 'delivered' : pause === undefined ? 'failed' : 'pending'
    // Never earlier; up to a fifth later, so that what failed together is not repeated together.
    const pauseMs = Math.round((pause ?? 0) * (1 + Math.random() / 5))
    await transaction.run(sql`insert into ${deliveries}
        (webhook, event, type, status, tries, next_at, at, ms, response_status, answer)
      values (${id}, ${event}, ${type}, ${state}, ${tries + 1}, ${now} + ${pauseMs}, ${now}, ${ms}, ${status}, ${answer.replaceAll('\0', '')})
      on conflict (webhook, event) do update set status = excluded.status, tries = excluded.tries,
        next_at = excluded.next_at, at = excluded.at, ms = excluded.ms, response_status = excluded.response_status, answer = excluded.answer`)
    await transaction.run(sql`delete from ${deliveries} where webhook = ${id} and status <> 'pending' and event in
      (select event from ${deliveries} where webhook = ${id} and status <> 'pending' order by at desc, event desc limit 1000 offset ${keptDeliveries})`)
  }
}

/** The type of the event that POST …/test sends. */
export const testType = 'webhook.test'

const toWebhook = (row: WebhookRow): Webhook => ({
  ...(JSON.parse(row.definition) as WebhookDefinition), // `create` and `update` wrote it.
  id: row.id,
  secret: row.secret,
  createdAt: row.created_at,
  createdBy: row.created_by,
  isPaused: row.is_paused === 1,
  position: row.position,
})

export const webhookNotFound = (id: string) =>
  new HttpError(404, 'webhook_not_found', `There is no webhook ${id}`)

export const deliveryNotFound = (id: string) =>
  new HttpError(
    404,
    'delivery_not_found',
    `The last deliveries of this webhook have none of the event ${id}`,
  )

export const tooManyWebhooks = () =>
  new HttpError(409, 'too_many_webhooks', `There are ${maxWebhooks} webhooks: delete one first`)
