import { allowsDomain, type Rights } from '@domains-and-files/auth'
import type { EventSource } from '@domains-and-files/events'
import { type DomainTold, domainEvents } from '../domain-list/domain-watch.ts'
import { changeEvents, changeOf } from '../ledger/change-events.ts'
import { registrarEvents } from '../ledger/registrar-events.ts'
import { describeChange } from './change-schema.ts'
import { withInstant } from './domains.ts'
import { storedChange } from './openapi-examples.ts'

/** What this service tells of, for GET /api/events and webhooks. */
export const eventSource: EventSource = {
  types: [...changeEvents, ...domainEvents, ...registrarEvents],
  scope: 'domains',
  describe: (event, rights) => {
    if (event.type.startsWith('domain.')) return describeDomain(event.data as DomainTold, rights) // As recorded.
    if (event.type.startsWith('registrar.')) return event.data as { registrar: string } // As recorded.
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

const describeDomain = ({ domain, ...days }: DomainTold, rights: Rights) =>
  allowsDomain(rights, domain.name) ? { ...withInstant(domain), ...days } : undefined
