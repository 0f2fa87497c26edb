import { allowsDomain } from '@domains-and-files/auth'
import type { EventSource } from '@domains-and-files/events'
import { changeEvents, changeOf } from '../ledger/change-events.ts'
import { describeChange } from './change-schema.ts'
import { storedChange } from './openapi-examples.ts'

/** What this service tells of, for GET /api/events and webhooks. */
export const eventSource: EventSource = {
  types: changeEvents,
  scope: 'domains',
  describe: (event, rights) => {
    const change = changeOf(event)
    return allowsDomain(rights, change.domain)
      ? describeChange(change, { caller: rights })
      : undefined
  },
  example: {
    id: '01KEZ5H3C0000ABCDEFGHJKMNP',
    type: 'zone.changed',
    at: storedChange.ended_at,
    by: storedChange.by,
    request_id: storedChange.request_id,
    data: storedChange,
  },
}
