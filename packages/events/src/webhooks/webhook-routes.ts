import { type Caller, findExcess, refuse } from '@domains-and-files/auth'
import { type App, answers, listPage, listSchema, operations, pageQuery } from '@domains-and-files/http'
import { z } from 'zod'
import { EventId, exampleId as exampleEvent } from '../event.ts'
import type { EventSource } from '../outbox.ts'
import type { WebhookDependencies, WebhookDispatcher } from './dispatcher.ts'
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
import { checkUrl, urlRefused } from './webhook-urls.ts'

const path = '/api/webhooks'
const AtWebhook = z.strictObject({ id: z.string().meta({ examples: [exampleId] }) })
const notFound = webhookNotFound(exampleId)
const refused = urlRefused('hooks.example.com leads to 10.0.0.1')

const createText = `As Standard Webhooks has it: POST with the event as the body, signed with the secret of this response. A response other than 2xx within 10 seconds is followed by further tries, for two days; 410 pauses the webhook. At most ${maxWebhooks}.`

const shared = { access: 'admin', folders: 'handler', tags: ['events'] } as const

const routesOfAll = ({ New, Created, Shown }: Schemas) =>
  operations({
    shared,
    createWebhook: {
      summary: 'Send events to a URL',
      description: createText,
      body: New,
      errors: [refused, tooManyWebhooks()],
      ...answers(201, 'The webhook, with its secret', Created),
    },
    listWebhooks: {
      summary: 'List the webhooks',
      description: 'Without their secrets.',
      querystring: z.strictObject(pageQuery(maxWebhooks, 200)),
      ...answers(200, 'The webhooks, oldest first', listSchema('WebhookList', 'webhooks', Shown)),
    },
  })

const DeliveryList = z.object({ deliveries: z.array(DeliveryRecord) }).meta({ id: 'DeliveryList' })

const routesOfOne = ({ Changes, Shown }: Schemas) =>
  operations({
    shared: { ...shared, params: AtWebhook, errors: [notFound] },
    getWebhook: {
      summary: 'Read one webhook',
      description: 'Without its secret.',
      ...answers(200, 'The webhook', Shown),
    },
    updateWebhook: {
      summary: 'Pause, resume or change a webhook',
      description: 'What happens while it is paused is delivered when it is resumed.',
      body: Changes,
      errors: [notFound, refused],
      ...answers(200, 'The changed webhook', Shown),
    },
    deleteWebhook: {
      summary: 'Delete a webhook',
      description: 'With what was still to be delivered to it.',
      ...answers(204, 'Deleted'),
    },
    testWebhook: {
      summary: 'Send a test event now',
      description: 'One try, of type `webhook.test`; also to a paused webhook.',
      ...answers(200, 'How the try ended', DeliveryRecord),
    },
    listDeliveries: {
      summary: 'The last 100 deliveries',
      description: 'A `pending` one is tried again.',
      ...answers(200, 'Deliveries, the last tried first', DeliveryList),
    },
    retryDelivery: {
      summary: 'Deliver an event again',
      description: 'With the same id, so that the receiver can tell that it repeats.',
      params: AtWebhook.extend({ delivery: EventId }),
      errors: [notFound, deliveryNotFound(exampleEvent)],
      ...answers(202, 'It is tried soon', DeliveryRecord),
    },
  })

export function registerWebhookRoutes(app: App, parts: WebhookDependencies, dispatcher: WebhookDispatcher) {
  const { store, log } = parts
  const { source } = log
  const schemas = schemasOf(source)
  const routes = routesOfAll(schemas)
  app.post(path, routes.createWebhook, async (request, reply) => {
    const { body, caller } = request
    refuse(findExcess(caller, body))
    await checkUrl(body.url, parts)
    const webhook = await store.create(body, { createdBy: caller.username, position: await log.end() })
    request.log.info({ webhook: webhook.id }, 'webhook created')
    reply.header('cache-control', 'no-store').header('location', `${path}/${webhook.id}`)
    return { ...describe(webhook, source), secret: webhook.secret }
  })
  app.get(path, routes.listWebhooks, async (request) => {
    return listPage('webhooks', await findVisible(store, request), request.query, (webhook) =>
      describe(webhook, source),
    )
  })
  serveWebhook(app, parts, dispatcher, routesOfOne(schemas))
}

function serveWebhook(
  app: App,
  parts: WebhookDependencies,
  dispatcher: WebhookDispatcher,
  routes: ReturnType<typeof routesOfOne>,
) {
  const { store, log } = parts
  const { source } = log
  const at = `${path}/:id` as const
  app.get(at, routes.getWebhook, async (request) => describe(await find(store, request), source))
  app.patch(at, routes.updateWebhook, async (request) => {
    const { body } = request
    const webhook = await find(store, request)
    refuse(findExcess(request.caller, { ...webhook, ...body }))
    if (body.url !== undefined) await checkUrl(body.url, parts)
    return describe(await store.update(webhook.id, body), source)
  })
  app.delete(at, routes.deleteWebhook, async (request) => {
    await store.remove((await find(store, request)).id)
  })
  app.post(`${at}/test`, routes.testWebhook, async (request) =>
    describeDelivery(await dispatcher.test(await find(store, request))),
  )
  app.get(`${at}/deliveries`, routes.listDeliveries, async (request) => {
    const { id } = await find(store, request)
    return { deliveries: (await store.deliveries(id)).map(describeDelivery) }
  })
  app.post(`${at}/deliveries/:delivery/retry`, routes.retryDelivery, async (request) => {
    const { id } = await find(store, request)
    return describeDelivery(await store.retry(id, request.params.delivery))
  })
}

type Sender = { caller: Caller }

/** The webhooks whose limits do not exceed the caller's. */
async function findVisible(store: WebhookStore, { caller }: Sender) {
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
