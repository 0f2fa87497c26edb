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
export {
  eventMigrations,
  eventTables,
  ofTypes,
  webhookMigrations,
  webhookTables,
} from './tables.ts'
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
export function serveEvents(app: App, { auth, outbox, source, clock, ...parts }: Dependencies) {
  const config = parts.config.webhooks
  const store = new WebhookStore(auth.database)
  const log = new EventLog(outbox, source)
  const dispatcher = new WebhookDispatcher({ ...config, store, log, clock, logger: parts.log })
  registerEventRoutes(app, { log, source, clock, findReader: auth.findReader })
  registerWebhookRoutes(app, { store, log, dispatcher, source, config })
  app.addHook('onReady', async () => dispatcher.start())
  app.addHook('onClose', () => dispatcher.close())
}
