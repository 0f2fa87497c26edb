// Events of a service: a transactional outbox, and its readers (pages, streams, webhooks).

export type { EventSource } from './event-source.ts'
export { serveEvents } from './open-events.ts'
export { appendEvents, type NewEvent, type StoredEvent } from './outbox.ts'
export {
  eventMigrations,
  eventTables,
  ofTypes,
  webhookMigrations,
  webhookTables,
} from './tables.ts'
export { webhookConfig, webhookSettings } from './webhooks/webhook-urls.ts'
