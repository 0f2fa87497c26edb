// What happens in a service, for those who want to know: an outbox in the transactions of the changes, and its readers.

export { registerEventRoutes } from './event-routes.ts'
export type { EventSource } from './event-source.ts'
export { appendEvents, EventLog, type NewEvent, type StoredEvent } from './outbox.ts'
export { eventMigrations, eventTables } from './tables.ts'
