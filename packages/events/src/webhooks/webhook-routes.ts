import { callerOf, findExcess, refuse } from '@domains-and-files/auth'
import { type App, answers, listPage, listSchema, operation, pageQuery } from '@domains-and-files/http'
import { z } from 'zod'
import { EventId, exampleId as exampleEvent } from '../event.ts'
import type { EventLog, EventSource } from '../outbox.ts'
import type { WebhookDispatcher } from './dispatcher.ts'
import {
  type Delivery,
  DeliveryRecord,
  deliveryNotFound,
  exampleId,
  maxWebhooks,
  type Schemas,
  schemasOf,
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
const AtWebhook = z.strictObject({ id: z.string().meta({ examples: [exampleId] }) })
const notFound = webhookNotFound(exampleId)
const refused = urlRefused('hooks.example.com leads to 10.0.0.1')

const about = (operationId: string, summary: string, description: string) => ({
  operationId,
  summary,
  description,
  tags: ['events'],
  ...({ access: 'admin', folders: 'handler' } as const),
})
const aboutOne = (...texts: Parameters<typeof about>) => ({
  ...about(...texts),
  params: AtWebhook,
  errors: [notFound],
})

/** The routes of /api/webhooks. */
export function registerWebhookRoutes(app: App, parts: Dependencies) {
  const schemas = schemasOf(parts.source)
  serveWebhooks(app, parts, schemas)
  serveWebhook(app, parts, schemas)
  serveDeliveries(app, parts)
}

const createText = `As Standard Webhooks has it: POST with the event as the body, signed with the secret of this response. A response other than 2xx within 10 seconds is followed by further tries, for two days; 410 pauses the webhook. At most ${maxWebhooks}.`

function serveWebhooks(app: App, parts: Dependencies, { New, Created, Shown }: Schemas) {
  const { store, log, source, config } = parts
  const create = operation({
    ...about('createWebhook', 'Send events to a URL', createText),
    body: New,
    errors: [refused, tooManyWebhooks()],
    ...answers(201, 'The webhook, with its secret', Created),
  })
  app.post(path, create, async (request, reply) => {
    const { body } = request
    const caller = callerOf(request)
    refuse(findExcess(caller, body))
    await checkUrl(body.url, config)
    const by = { createdBy: caller.username, position: await log.end() }
    const webhook = await store.create(body, by)
    request.log.info({ webhook: webhook.id }, 'webhook created')
    reply.header('cache-control', 'no-store').header('location', `${path}/${webhook.id}`)
    return reply.code(201).send({ ...describe(webhook, source), secret: webhook.secret })
  })
  const list = operation({
    ...about('listWebhooks', 'List the webhooks', 'Without their secrets.'),
    querystring: z.strictObject(pageQuery(maxWebhooks, 200)),
    ...answers(200, 'The webhooks, oldest first', listSchema('WebhookList', 'webhooks', Shown)),
  })
  app.get(path, list, async (request) => {
    const visible = await findVisible(store, request)
    return listPage('webhooks', visible, request.query, (webhook) => describe(webhook, source))
  })
}

const pausedText = 'What happens while it is paused is delivered when it is resumed.'

function serveWebhook(app: App, { store, source, config }: Dependencies, { Changes, Shown }: Schemas) {
  const read = operation({
    ...aboutOne('getWebhook', 'Read one webhook', 'Without its secret.'),
    ...answers(200, 'The webhook', Shown),
  })
  app.get(`${path}/:id`, read, async (request) => describe(await find(store, request), source))
  const change = operation({
    ...aboutOne('updateWebhook', 'Pause, resume or change a webhook', pausedText),
    body: Changes,
    errors: [notFound, refused],
    ...answers(200, 'The changed webhook', Shown),
  })
  app.patch(`${path}/:id`, change, async (request) => {
    const { body } = request
    const webhook = await find(store, request)
    refuse(findExcess(callerOf(request), { ...webhook, ...body }))
    if (body.url !== undefined) await checkUrl(body.url, config)
    return describe(await store.update(webhook.id, body), source)
  })
  const remove = operation({
    ...aboutOne('deleteWebhook', 'Delete a webhook', 'With what was still to be delivered to it.'),
    ...answers(204, 'Deleted'),
  })
  app.delete(`${path}/:id`, remove, async (request, reply) => {
    await store.remove((await find(store, request)).id)
    return reply.code(204).send(undefined)
  })
}

const DeliveryList = z.object({ deliveries: z.array(DeliveryRecord) }).meta({ id: 'DeliveryList' })
const testText = 'One try, of type `webhook.test`; also to a paused webhook.'
const retryText = 'With the same id, so that the receiver can tell that it repeats.'

function serveDeliveries(app: App, { store, dispatcher }: Dependencies) {
  const test = operation({
    ...aboutOne('testWebhook', 'Send a test event now', testText),
    ...answers(200, 'How the try ended', DeliveryRecord),
  })
  app.post(`${path}/:id/test`, test, async (request) =>
    describeDelivery(await dispatcher.test(await find(store, request))),
  )
  const list = operation({
    ...aboutOne('listDeliveries', 'The last 100 deliveries', 'A `pending` one is tried again.'),
    ...answers(200, 'Deliveries, the last tried first', DeliveryList),
  })
  app.get(`${path}/:id/deliveries`, list, async (request) => {
    const { id } = await find(store, request)
    return { deliveries: (await store.deliveries(id)).map(describeDelivery) }
  })
  const retry = operation({
    ...about('retryDelivery', 'Deliver an event again', retryText),
    params: AtWebhook.extend({ delivery: EventId }),
    errors: [notFound, deliveryNotFound(exampleEvent)],
    ...answers(202, 'It is tried soon', DeliveryRecord),
  })
  app.post(`${path}/:id/deliveries/:delivery/retry`, retry, async (request, reply) => {
    const { id } = await find(store, request)
    const again = await store.retry(id, request.params.delivery)
    return reply.code(202).send(describeDelivery(again))
  })
}

type Sender = Parameters<typeof callerOf>[0]

/** The webhooks whose limits do not exceed the caller's. */
async function findVisible(store: WebhookStore, request: Sender) {
  const caller = callerOf(request)
  return (await store.list()).filter((webhook) => findExcess(caller, webhook) === undefined)
}

/** @throws 404 `webhook_not_found` for others, too. */
async function find(store: WebhookStore, request: Sender & { params: { id: string } }) {
  const { id } = request.params
  const webhook = (await findVisible(store, request)).find((each) => each.id === id)
  if (!webhook) throw webhookNotFound(id)
  return webhook
}

function describe(webhook: Webhook, { scope }: EventSource) {
  const { id, url, name = null, types = null, paused, created_by } = webhook
  const created_at = new Date(webhook.created_at).toISOString()
  return { id, url, name, types, [scope]: webhook[scope] ?? null, paused, created_at, created_by }
}

function describeDelivery({ event, next_at, at, ...delivery }: Delivery) {
  const next = delivery.status === 'pending' ? new Date(next_at).toISOString() : null
  return { ...delivery, id: event, at: new Date(at).toISOString(), next_at: next }
}
