import { type Caller, callerOf, findExcess } from '@domains-and-files/auth'
import { type App, defineRoute, HttpError } from '@domains-and-files/http'
import { z } from 'zod'
import type { EventSource } from '../event-source.ts'
import type { EventLog } from '../outbox.ts'
import { AddressRefused, resolveHost } from './addresses.ts'
import type { WebhookDispatcher } from './dispatcher.ts'
import { DeliveryRecord, eventId, exampleId as id, schemasOf } from './webhook-schemas.ts'
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
