import { allowsDomain, type Caller, callerOf, type Rights } from '@domains-and-files/auth'
import type { EventSource } from '@domains-and-files/events'
import {
  type App,
  answers,
  longListSchema,
  nextOf,
  pageQuery,
  paginate,
  uncheckedJson,
} from '@domains-and-files/http'
import { z } from 'zod'
import { type DomainTold, domainEvents } from '../domain-list/list-store.ts'
import { changeNotFound, changeNotQueued, ownProposal } from '../errors.ts'
import { changeStatuses, type Ledger, type StoredChange } from '../ledger/ledger.ts'
import { changeEvents, changeOf, registrarEvents } from '../ledger/stored-change.ts'
import type { ZoneWriter } from '../zones/zone-writer.ts'
import { Change, describeChange, setRetryAfter } from './change-schema.ts'
import { withInstant } from './domains.ts'
import { storedChange } from './openapi-examples.ts'
import { afterChange, ChangeId, DomainName } from './zone/zone-request.ts'

const path = '/api/changes'
const AtChange = z.strictObject({ id: ChangeId })

interface Dependencies {
  ledger: Ledger
  zones: ZoneWriter
}

const listSchema = {
  operationId: 'listChanges',
  summary: 'List changes of all domains, newest first',
  description: 'Changes of the domains that the caller may see, whatever their status.',
  tags: ['history'],
  querystring: z.strictObject({
    ...pageQuery(50, 200),
    ...afterChange,
    domain: DomainName.optional().meta({ description: 'only of this domain' }),
    by: z.string().optional().meta({ description: 'only by this user' }),
    status: z.enum(changeStatuses).optional(),
    since: z.iso
      .datetime({ offset: true, error: 'must be a time such as 2027-01-15T09:30:00Z' })
      .optional()
      .meta({ description: 'only requested at or after this time' }),
  }),
  ...answers(200, 'One page of changes', longListSchema('changes', Change)),
}

const getSchema = {
  operationId: 'getChange',
  summary: 'Read one change and its outcome',
  description: 'Poll this after a `202` until its state is final.',
  tags: ['history'],
  params: AtChange,
  errors: [changeNotFound(7)],
  ...answers(200, 'The change', Change),
}

const cancelSchema = {
  operationId: 'cancelChange',
  summary: 'Cancel a queued or proposed change',
  description:
    'Only a change that is still queued, or that the caller has proposed; nothing of it is sent.',
  tags: ['history'],
  params: AtChange,
  errors: [changeNotFound(7), changeNotQueued(7, 'sending')],
  ...answers(200, 'The cancelled change', Change),
}

const HeldChanges = z
  .object({ count: z.int().meta({ description: 'how many changes waited' }) })
  .meta({ id: 'HeldChanges', examples: [{ count: 3 }] })

const aboutHeld =
  'After a restore from a backup, changes that were queued in it wait for an admin, since they may have been carried out after the backup was made. An admin limited to domains decides about the changes of these domains.'

const releaseHeldSchema = {
  operationId: 'releaseHeldChanges',
  summary: 'Carry out the queued changes of a restored backup',
  description: aboutHeld,
  tags: ['operations'],
  ...answers(200, 'The changes are queued', HeldChanges),
}

const cancelHeldSchema = {
  operationId: 'cancelHeldChanges',
  summary: 'Cancel the queued changes of a restored backup',
  description: aboutHeld,
  tags: ['operations'],
  ...answers(200, 'The changes are cancelled', HeldChanges),
}

/** The routes of /api/changes. */
export function registerChangeRoutes(app: App, { ledger, zones }: Dependencies) {
  const listed = { config: { access: 'viewer' }, serializerCompiler: uncheckedJson } as const
  app.get(path, { ...listed, schema: listSchema }, async (request, reply) => {
    const { page, page_size, after, since, ...filter } = request.query
    const caller = callerOf(request)
    const seen = {
      ...filter,
      domains: caller.domains,
      since: since === undefined ? undefined : new Date(since),
    }
    const { changes, total, next } = await ledger.list(seen, { page, page_size, after })
    return {
      changes: changes.map((change) => describeChange(change, { caller })),
      pagination: paginate(request.query, total),
      next: nextOf(request, reply, next),
    }
  })
  const read = { access: 'viewer', enforcesRecordLimits: true } as const
  app.get(`${path}/:id`, { config: read, schema: getSchema }, async (request, reply) => {
    const caller = callerOf(request)
    const change = await findVisible(ledger, request.params.id, caller)
    if (!caller.readsAll) requireOwn(change, caller)
    setRetryAfter(reply, change)
    return describeChange(change, { caller, zones: await ledger.zonesOf(change.id) })
  })
  const config = { ...read, access: 'editor' } as const
  app.delete(`${path}/:id`, { config, schema: cancelSchema }, async (request) => {
    const caller = callerOf(request)
    const change = await findVisible(ledger, request.params.id, caller)
    requireOwn(change, caller)
    if (change.status === 'proposed' && change.by !== caller.username) throw ownProposal()
    return describeChange(await zones.changes.cancel(change.id), { caller })
  })
  const [held, admin] = [`${path}/held`, { access: 'admin' }] as const
  app.post(`${held}/release`, { config: admin, schema: releaseHeldSchema }, async (request) => {
    const count = await ledger.endHold({ cancel: false, domains: callerOf(request).domains })
    zones.changes.wake()
    return { count }
  })
  app.delete(held, { config: admin, schema: cancelHeldSchema }, async (request) => ({
    count: await ledger.endHold({ cancel: true, domains: callerOf(request).domains }),
  }))
}

/** @throws 404 for a change of a domain that the caller may not see. */
export async function findVisible(
  ledger: Ledger,
  id: number,
  caller: Caller,
): Promise<StoredChange> {
  const change = await ledger.find(id)
  if (!change || !allowsDomain(caller, change.domain)) throw changeNotFound(id)
  return change
}

// Changes that a token limited to records did not make hold other records. Its name may be that of another token.
function requireOwn({ id, callerId }: StoredChange, caller: Caller) {
  if (caller.records && callerId !== caller.id) throw changeNotFound(id)
}

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
  example: { type: 'zone.changed', data: storedChange },
}

const describeDomain = ({ domain, ...days }: DomainTold, rights: Rights) =>
  allowsDomain(rights, domain.name) ? { ...withInstant(domain), ...days } : undefined
