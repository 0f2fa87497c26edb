import { type Caller, callerOf, findExcess, refuse } from '@domains-and-files/auth'
import { type App, answers, listPage, pageQuery } from '@domains-and-files/http'
import { z } from 'zod'
import type { EventSource } from '../event-source.ts'
import type { EventLog } from '../outbox.ts'
import type { WebhookDispatcher } from './dispatcher.ts'
import {
  DeliveryRecord,
  eventId,
  exampleId,
  schemasOf,
  type WebhookDefinition,
} from './webhook-schemas.ts'
import {
  type Delivery,
  deliveryNotFound,
  maxWebhooks,
  tooManyWebhooks,
  type Webhook,
  type WebhookStore,
  webhookNotFound,
} from './webhook-store.ts'
import { checkUrl, urlRefused, type WebhookConfig } from './webhook-urls.ts'

interface Dependencies {
  store: WebhookStore
  log: EventLog
  dispatcher: WebhookDispatcher
  source: EventSource
  config: WebhookConfig
}

const path = '/api/webhooks'
const config = { access: 'admin', folders: 'handler' } as const
const id = z.string().meta({ examples: [exampleId] })
const delivery = z.string().meta({ examples: [eventId] })
const notFound = webhookNotFound(exampleId)
const refused = urlRefused('hooks.example.com leads to 10.0.0.1')

const about = (operationId: string, summary: string, description: string) => ({
  ...{ operationId, summary, description, tags: ['events'] },
})
const aboutOne = (...texts: Parameters<typeof about>) => ({
  ...about(...texts),
  params: z.strictObject({ id }),
  errors: [notFound],
})

/** The routes of /api/webhooks. */
export function registerWebhookRoutes(app: App, parts: Dependencies) {
  const schemas = schemasOf(parts.source)
  createWebhook(app, parts, schemas)
  readWebhooks(app, parts, schemas)
  changeWebhook(app, parts, schemas)
  serveDeliveries(app, parts)
}

type Schemas = ReturnType<typeof schemasOf>

const createText = `As Standard Webhooks has it: POST with the event as the body, signed with the secret of this response. A response other than 2xx within 10 seconds is followed by further tries, for two days; 410 pauses the webhook. At most ${maxWebhooks}.`

function createWebhook(app: App, parts: Dependencies, { New, Created }: Schemas) {
  const schema = {
    ...about('createWebhook', 'Send events to a URL', createText),
    body: New,
    errors: [refused, tooManyWebhooks()],
    ...answers(201, 'The webhook, with its secret', Created),
  }
  app.post(path, { config, schema }, async (request, reply) => {
    const { body } = request
    const caller = callerOf(request)
    refuse(excessOf(caller, body))
    await checkUrl(body.url, parts.config)
    const position = await parts.log.end()
    const webhook = await parts.store.create(body, { createdBy: caller.username, position })
    request.log.info({ webhook: webhook.id }, 'webhook created')
    reply.header('cache-control', 'no-store').header('location', `${path}/${webhook.id}`)
    return reply.code(201).send({ ...describe(webhook, parts.source), secret: webhook.secret })
  })
}

function readWebhooks(app: App, parts: Dependencies, { List, Shown }: Schemas) {
  const { store, source } = parts
  const listed = {
    ...about('listWebhooks', 'List the webhooks', 'Without their secrets.'),
    querystring: z.strictObject(pageQuery(maxWebhooks, 200)),
    ...answers(200, 'The webhooks, oldest first', List),
  }
  app.get(path, { config, schema: listed }, async (request) => {
    const caller = callerOf(request)
    const visible = (await store.list()).filter((webhook) => !excessOf(caller, webhook))
    return listPage('webhooks', visible, request.query, (webhook) => describe(webhook, source))
  })
  const one = {
    ...aboutOne('getWebhook', 'Read one webhook', 'Without its secret.'),
    ...answers(200, 'The webhook', Shown),
  }
  app.get(`${path}/:id`, { config, schema: one }, async (request) =>
    describe(await find(parts, request), source),
  )
}

const pausedText = 'What happens while it is paused is delivered when it is resumed.'

function changeWebhook(app: App, parts: Dependencies, { Changes, Shown }: Schemas) {
  const { store, source } = parts
  const changed = {
    ...aboutOne('updateWebhook', 'Pause, resume or change a webhook', pausedText),
    body: Changes,
    errors: [notFound, refused],
    ...answers(200, 'The changed webhook', Shown),
  }
  app.patch(`${path}/:id`, { config, schema: changed }, async (request) => {
    const { body } = request
    const webhook = await find(parts, request)
    refuse(excessOf(callerOf(request), { ...webhook, ...body }))
    if (body.url !== undefined) await checkUrl(body.url, parts.config)
    return describe(await store.update(webhook.id, body), source)
  })
  const deleted = {
    ...aboutOne('deleteWebhook', 'Delete a webhook', 'With what was still to be delivered to it.'),
    ...answers(204, 'Deleted'),
  }
  app.delete(`${path}/:id`, { config, schema: deleted }, async (request, reply) => {
    await store.remove((await find(parts, request)).id)
    return reply.code(204).send(undefined)
  })
}

const DeliveryList = z
  .object({ deliveries: z.array(DeliveryRecord) })
  .meta({ id: 'DeliveryList', examples: [{ deliveries: [] }] })
const testText = 'One try, of type `webhook.test`; also to a paused webhook.'
const listText = 'A `pending` one is tried again.'
const retryText = 'With the same id, so that the receiver can tell that it repeats.'

function serveDeliveries(app: App, parts: Dependencies) {
  const { store, dispatcher } = parts
  const tested = {
    ...aboutOne('testWebhook', 'Send a test event now', testText),
    ...answers(200, 'How the try ended', DeliveryRecord),
  }
  app.post(`${path}/:id/test`, { config, schema: tested }, async (request) =>
    describeDelivery(await dispatcher.test(await find(parts, request))),
  )
  const listed = {
    ...aboutOne('listDeliveries', 'The last 100 deliveries', listText),
    ...answers(200, 'Deliveries, the last tried first', DeliveryList),
  }
  app.get(`${path}/:id/deliveries`, { config, schema: listed }, async (request) => {
    const { id } = await find(parts, request)
    return { deliveries: (await store.deliveries(id)).map(describeDelivery) }
  })
  const retried = {
    ...about('retryDelivery', 'Deliver an event again', retryText),
    params: z.strictObject({ id, delivery }),
    errors: [notFound, deliveryNotFound(eventId)],
    ...answers(202, 'It is tried soon', DeliveryRecord),
  }
  const url = `${path}/:id/deliveries/:delivery/retry`
  app.post(url, { config, schema: retried }, async (request, reply) => {
    const { id } = await find(parts, request)
    const again = await store.retry(id, request.params.delivery)
    return reply.code(202).send(describeDelivery(again))
  })
}

type Sender = Parameters<typeof callerOf>[0]

/** @throws 404 `webhook_not_found`, also for a webhook whose limits exceed the caller's. */
async function find({ store }: Dependencies, request: Sender & { params: { id: string } }) {
  const webhook = await store.get(request.params.id)
  if (excessOf(callerOf(request), webhook)) throw webhookNotFound(webhook.id)
  return webhook
}

/** Why the caller may not see or create a webhook with these limits; undefined if it may. */
const excessOf = (
  caller: Caller,
  { domains, folders }: Pick<WebhookDefinition, 'domains' | 'folders'>,
) => findExcess(caller, { role: 'viewer', domains, folders })

function describe(webhook: Webhook, { scope }: EventSource) {
  const { id, url, name = null, types = null, paused, created_by } = webhook
  const created_at = new Date(webhook.created_at).toISOString()
  return { id, url, name, types, [scope]: webhook[scope] ?? null, paused, created_at, created_by }
}

function describeDelivery({ event, next_at, at, ...delivery }: Delivery) {
  const next = delivery.status === 'pending' ? new Date(next_at).toISOString() : null
  return { ...delivery, id: event, at: new Date(at).toISOString(), next_at: next }
}
