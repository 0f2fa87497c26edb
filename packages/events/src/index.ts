// Events of a service: a transactional outbox, and its readers (pages, streams, webhooks).

import type { Auth } from '@domains-and-files/auth'
import type { App, Clock, Logger } from '@domains-and-files/http'
import type { Sql } from '@domains-and-files/persistence'
import { registerEventRoutes } from './event-routes.ts'
import { EventLog, type EventSource } from './outbox.ts'
import { WebhookDispatcher } from './webhooks/dispatcher.ts'
import { registerWebhookRoutes } from './webhooks/webhook-routes.ts'
import { WebhookStore } from './webhooks/webhook-store.ts'
import type { WebhookConfig } from './webhooks/webhook-urls.ts'

export { appendEvents, type EventSource, type NewEvent, type StoredEvent } from './outbox.ts'
export * from './tables.ts'
export { webhookSettings } from './webhooks/webhook-urls.ts'

interface Dependencies {
  /** Where the service appends events. */
  outbox: Sql
  /** Holds the webhooks, by `webhookMigrations`. */
  auth: Pick<Auth, 'database' | 'findReader'>
  source: EventSource
  config: { webhooks: WebhookConfig }
  clock: Clock
  log: Logger
}

/** Serves events and webhooks of a service, and runs webhook deliveries while the app is open. */
export function serveEvents(app: App, { auth, outbox, source, clock, config, log: logger }: Dependencies) {
  const store = new WebhookStore(auth.database)
  const log = new EventLog(outbox, source)
  const webhooks = { ...config.webhooks, store, log, clock, logger }
  const dispatcher = new WebhookDispatcher(webhooks)
  registerEventRoutes(app, { log, clock, findReader: auth.findReader })
  registerWebhookRoutes(app, webhooks, dispatcher)
  app.addHook('onReady', async () => dispatcher.start())
  app.addHook('onClose', () => dispatcher.close())
}
