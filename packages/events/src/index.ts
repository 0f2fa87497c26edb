// What happens in a service, for those who want to know: an outbox in the transactions of the changes, and its readers.

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
