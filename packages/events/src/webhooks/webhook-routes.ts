import { type Caller, callerOf, Domains, Folders, findExcess } from '@domains-and-files/auth'
import { type App, defineRoute, HttpError } from '@domains-and-files/http'
import { z } from 'zod'
import type { EventSource } from '../event-source.ts'
import type { EventLog } from '../outbox.ts'
import { AddressRefused, resolveHost } from './addresses.ts'
import type { WebhookDispatcher } from './dispatcher.ts'
import type { WebhookConfig } from './webhook-settings.ts'
import {
  type Delivery,
  deliveryNotFound,
  maxWebhooks,
  tooManyWebhooks,
  type Webhook,
  type WebhookDefinition,
  type WebhookStore,
  webhookNotFound,
} from './webhook-store.ts'

interface Dependencies {
  store: WebhookStore
  log: EventLog
  dispatcher: WebhookDispatcher
  source: EventSource
  config: WebhookConfig
}

/** The routes of /api/webhooks. */
export function registerWebhookRoutes(app: App, parts: Dependencies) {
  const schemas = schemasOf(parts.source)
  app.route(createWebhook(parts, schemas))
  app.route(listWebhooks(parts, schemas))
  app.route(getWebhook(parts, schemas))
  app.route(updateWebhook(parts, schemas))
  app.route(deleteWebhook(parts))
  app.route(testWebhook(parts))
  app.route(listDeliveries(parts))
  app.route(retryDelivery(parts))
}

const id = '6a1f4e0e-2f5e-4b52-8a1e-9c7d3f0b5a21'
const eventId = '01KEZ5H3C0000ABCDEFGHJKMNP'

const DeliveryRecord = z
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
        ...{
          at: '2027-01-15T09:30:01.000Z',
          next_at: null,
          ms: 84,
          response_status: 204,
          answer: '',
        },
      },
    ],
  })

const schemasOf = ({ types, scope }: EventSource) => {
  const limit = { domains: Domains.optional(), folders: Folders.optional() }[scope]
  // Of unknown name to the types of a request: `readDefinition`.
  const only = (schema: z.ZodType): Record<never, z.ZodType> => ({ [scope]: schema })
  const description = `only events about these ${scope}; default: all`
  const fields = {
    url: z.string().max(2_000).meta({ description: 'https, without a password in it' }),
    name: z.string().min(1).max(100).optional(),
    types: z.array(z.enum(types)).min(1).optional().meta({ description: 'default: all' }),
    ...only(limit.meta({ description })),
  }
  const example = { url: 'https://hooks.example.com/changes', name: 'chat', types: [types[0]] }
  const New = z.strictObject(fields).meta({ id: 'NewWebhook', examples: [example] })
  const Changes = z
    .strictObject({ ...fields, url: fields.url.optional(), paused: z.boolean().optional() })
    .meta({ id: 'WebhookChanges', examples: [{ paused: true }] })
  const record = {
    ...{ id, url: example.url, name: 'chat', types: example.types, [scope]: null },
    ...{ paused: false, created_at: '2027-01-15T09:30:00.000Z', created_by: 'admin' },
  }
  const Shown = z
    .object({
      id: z.string(),
      url: z.string(),
      name: z.string().nullable(),
      types: z.array(z.string()).nullable().meta({ description: 'null: all' }),
      ...only(z.array(z.string()).nullable().meta({ description: 'null: all' })),
      paused: z.boolean().meta({ description: 'events are kept for it, 30 days at most' }),
      created_at: z.iso.datetime(),
      created_by: z.string(),
    })
    .meta({ id: 'Webhook', examples: [record] })
  const Created = Shown.extend({
    secret: z.string().meta({ description: 'signs the deliveries; shown only now' }),
  }).meta({
    id: 'CreatedWebhook',
    examples: [{ ...record, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' }],
  })
  const List = z
    .object({ webhooks: z.array(Shown) })
    .meta({ id: 'WebhookList', examples: [{ webhooks: [record] }] })
  return { New, Changes, Shown, Created, List }
}

type Schemas = ReturnType<typeof schemasOf>

const AtWebhook = z.strictObject({ id: z.string().meta({ examples: [id] }) })
const AtDelivery = z.strictObject({
  ...AtWebhook.shape,
  delivery: z.string().meta({ examples: [eventId] }),
})
const common = { tags: ['events'], errors: [webhookNotFound(id)] }
const access = { access: 'admin', folders: 'handler' } as const

const createWebhook = (parts: Dependencies, { New, Created }: Schemas) =>
  defineRoute({
    method: 'POST',
    url: '/api/webhooks',
    config: access,
    schema: {
      operationId: 'createWebhook',
      summary: 'Send events to a URL',
      description: `As Standard Webhooks has it: POST with the event as the body, signed with the secret of this response. A response other than 2xx within 10 seconds is followed by further tries, for two days; 410 pauses the webhook. At most ${maxWebhooks}.`,
      tags: ['events'],
      body: New,
      errors: [urlRefused('hooks.example.com leads to 10.0.0.1'), tooManyWebhooks()],
      responses: { 201: { description: 'The webhook, with its secret' } },
      response: { 201: Created },
    },
    handler: async (request, reply) => {
      const caller = callerOf(request)
      const definition = readDefinition(request.body)
      requireWithin(caller, definition)
      await checkUrl(definition.url, parts.config)
      const position = await parts.log.end()
      const webhook = await parts.store.create(definition, { createdBy: caller.username, position })
      request.log.info({ webhook: webhook.id }, 'webhook created')
      reply.header('cache-control', 'no-store').header('location', `/api/webhooks/${webhook.id}`)
      return reply.code(201).send({ ...describe(webhook, parts.source), secret: webhook.secret })
    },
  })

const listWebhooks = ({ store, source }: Dependencies, { List }: Schemas) =>
  defineRoute({
    method: 'GET',
    url: '/api/webhooks',
    config: access,
    schema: {
      operationId: 'listWebhooks',
      summary: 'List the webhooks',
      description: 'Without their secrets.',
      tags: ['events'],
      responses: { 200: { description: 'All webhooks, oldest first' } },
      response: { 200: List },
    },
    handler: async (request) => {
      const caller = callerOf(request)
      const visible = (await store.list()).filter((webhook) => !excessOf(caller, webhook))
      return { webhooks: visible.map((webhook) => describe(webhook, source)) }
    },
  })

const getWebhook = (parts: Dependencies, { Shown }: Schemas) =>
  defineRoute({
    method: 'GET',
    url: '/api/webhooks/:id',
    config: access,
    schema: {
      ...common,
      operationId: 'getWebhook',
      summary: 'Read one webhook',
      description: 'Without its secret.',
      params: AtWebhook,
      responses: { 200: { description: 'The webhook' } },
      response: { 200: Shown },
    },
    handler: async (request) => describe(await find(parts, request), parts.source),
  })

const updateWebhook = (parts: Dependencies, { Changes, Shown }: Schemas) =>
  defineRoute({
    method: 'PATCH',
    url: '/api/webhooks/:id',
    config: access,
    schema: {
      ...common,
      operationId: 'updateWebhook',
      summary: 'Pause, resume or change a webhook',
      description: 'What happens while it is paused is delivered when it is resumed.',
      params: AtWebhook,
      body: Changes,
      errors: [...common.errors, urlRefused('hooks.example.com leads to 10.0.0.1')],
      responses: { 200: { description: 'The changed webhook' } },
      response: { 200: Shown },
    },
    handler: async (request) => {
      const { paused, ...body } = request.body
      const webhook = await find(parts, request)
      const changes = readDefinition(body)
      requireWithin(callerOf(request), { ...webhook, ...changes })
      if (changes.url !== undefined) await checkUrl(changes.url, parts.config)
      return describe(
        await parts.store.update(webhook.id, { ...changes, isPaused: paused }),
        parts.source,
      )
    },
  })

const deleteWebhook = (parts: Dependencies) =>
  defineRoute({
    method: 'DELETE',
    url: '/api/webhooks/:id',
    config: access,
    schema: {
      ...common,
      operationId: 'deleteWebhook',
      summary: 'Delete a webhook',
      description: 'With what was still to be delivered to it.',
      params: AtWebhook,
      responses: { 204: { description: 'Deleted' } },
      response: { 204: z.undefined() },
    },
    handler: async (request, reply) => {
      await parts.store.remove((await find(parts, request)).id)
      return reply.code(204).send(undefined)
    },
  })

const testWebhook = (parts: Dependencies) =>
  defineRoute({
    method: 'POST',
    url: '/api/webhooks/:id/test',
    config: access,
    schema: {
      ...common,
      operationId: 'testWebhook',
      summary: 'Send a test event now',
      description: 'One try, of type `webhook.test`; also to a paused webhook.',
      params: AtWebhook,
      responses: { 200: { description: 'How the try ended' } },
      response: { 200: DeliveryRecord },
    },
    handler: async (request) => {
      const webhook = await find(parts, request)
      return findDelivery(parts, webhook, await parts.dispatcher.test(webhook))
    },
  })

const listDeliveries = (parts: Dependencies) =>
  defineRoute({
    method: 'GET',
    url: '/api/webhooks/:id/deliveries',
    config: access,
    schema: {
      ...common,
      operationId: 'listDeliveries',
      summary: 'The last 100 deliveries',
      description: 'And those that are to be tried again.',
      params: AtWebhook,
      responses: { 200: { description: 'Deliveries, the last tried first' } },
      response: {
        200: z
          .object({ deliveries: z.array(DeliveryRecord) })
          .meta({ id: 'DeliveryList', examples: [{ deliveries: [] }] }),
      },
    },
    handler: async (request) => {
      const deliveries = await parts.store.deliveries((await find(parts, request)).id)
      return { deliveries: deliveries.map(describeDelivery) }
    },
  })

const retryDelivery = (parts: Dependencies) =>
  defineRoute({
    method: 'POST',
    url: '/api/webhooks/:id/deliveries/:delivery/retry',
    config: access,
    schema: {
      ...common,
      operationId: 'retryDelivery',
      summary: 'Deliver an event again',
      description: 'With the same id, so that the receiver can tell that it repeats.',
      params: AtDelivery,
      errors: [...common.errors, deliveryNotFound(eventId)],
      responses: { 202: { description: 'It is tried soon' } },
      response: { 202: DeliveryRecord },
    },
    handler: async (request, reply) => {
      const webhook = await find(parts, request)
      await parts.store.retry(webhook.id, request.params.delivery)
      return reply.code(202).send(await findDelivery(parts, webhook, request.params.delivery))
    },
  })

type Sender = Parameters<typeof callerOf>[0]

async function find({ store }: Dependencies, request: Sender): Promise<Webhook> {
  const { id: wanted } = AtWebhook.loose().parse(request.params)
  const webhook = await store.get(wanted)
  if (excessOf(callerOf(request), webhook)) throw webhookNotFound(wanted)
  return webhook
}

async function findDelivery({ store }: Dependencies, webhook: Webhook, event: string) {
  const found = (await store.deliveries(webhook.id)).find((each) => each.event === event)
  if (!found) throw deliveryNotFound(event)
  return describeDelivery(found)
}

const readDefinition = <Body extends object>(body: Body) =>
  body as Body & Partial<WebhookDefinition>

/** Why this webhook is not the caller's to see or to make: it tells of more than the caller may read. */
const excessOf = (caller: Caller, { domains, folders }: Partial<WebhookDefinition>) =>
  findExcess(caller, { role: 'viewer', domains, folders })

function requireWithin(caller: Caller, definition: Partial<WebhookDefinition>) {
  const excess = excessOf(caller, definition)
  if (excess) throw new HttpError(403, 'forbidden', excess)
}

/** @throws 400 `webhook_url_refused` */
async function checkUrl(text: string, { allowsHttp, networks }: WebhookConfig) {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !(url.protocol === 'https:' || (allowsHttp && url.protocol === 'http:')))
    throw urlRefused(allowsHttp ? 'It is no http or https URL' : 'It is no https URL')
  if (url.username || url.password) throw urlRefused('It has a user name or password in it')
  try {
    await resolveHost(url.hostname, networks)
  } catch (error) {
    // A name that does not resolve now may do so later: each delivery checks it.
    if (error instanceof AddressRefused) throw urlRefused(error.message)
  }
}

const urlRefused = (why: string) => new HttpError(400, 'webhook_url_refused', why)

const describe = (webhook: Webhook, { scope }: EventSource) => ({
  id: webhook.id,
  url: webhook.url,
  name: webhook.name ?? null,
  types: webhook.types ?? null,
  [scope]: webhook[scope] ?? null,
  paused: webhook.isPaused,
  created_at: new Date(webhook.createdAt).toISOString(),
  created_by: webhook.createdBy,
})

function describeDelivery({ event, next_at, at, ...delivery }: Delivery) {
  const next = delivery.status === 'pending' ? new Date(next_at).toISOString() : null
  return { ...delivery, id: event, at: new Date(at).toISOString(), next_at: next }
}
