import { allowsDomain, type Caller, onlyProposes } from '@domains-and-files/auth'
import type { EventSource } from '@domains-and-files/events'
import {
  type App,
  answers,
  longListSchema,
  operations,
  pageOf,
  pageQuery,
  uncheckedJson,
} from '@domains-and-files/http'
import { z } from 'zod'
import { readDomain } from '../dns/domain-name.ts'
import { type DomainEventData, domainEvents } from '../domain-list/list-store.ts'
import { changeClosed, changeNotFound, changeNotQueued, changeOutdated, ownChange, ownProposal } from '../errors.ts'
import { changeStatuses, type Ledger, type StoredChange } from '../ledger/ledger.ts'
import { changeEvents, changeOf, registrarEvents } from '../ledger/stored-change.ts'
import type { Dependencies } from '../storage.ts'
import { Change, describeChange, setRetryAfter } from './change-schema.ts'
import { withInstant } from './domains.ts'
import { change, domainFailures } from './openapi-examples.ts'
import { accepted, afterChange, ChangeId, DomainName } from './zone/zone-request.ts'

const path = '/api/changes'
const AtChange = z.strictObject({ id: ChangeId })

const HeldChanges = z
  .object({ count: z.int().describe('how many changes waited') })
  .meta({ id: 'HeldChanges', examples: [{ count: 3 }] })

const aboutHeld =
  'After a restore from a backup, changes that were queued in it wait for an admin, since they may have been carried out after the backup was made. An admin limited to domains decides about the changes of these domains.'

const held = operations({
  shared: { access: 'admin', tags: ['operations'], description: aboutHeld },
  releaseHeldChanges: {
    summary: 'Carry out the queued changes of a restored backup',
    ...answers(200, 'The changes are queued', HeldChanges),
  },
  cancelHeldChanges: {
    summary: 'Cancel the queued changes of a restored backup',
    ...answers(200, 'The changes are cancelled', HeldChanges),
  },
})

const refusals = [changeNotFound(7), ownChange(), changeClosed(7, 'rejected')]
const { 'preference-applied': _, ...headersOfQueued } = accepted.headers

const routes = operations({
  shared: { access: 'editor', enforcesRecordLimits: true, tags: ['history'] },
  listChanges: {
    access: 'viewer',
    enforcesRecordLimits: false,
    summary: 'List changes of all domains, newest first',
    description: 'Changes of the domains that the caller may see, whatever their status.',
    querystring: z.strictObject({
      ...pageQuery(50, 200),
      ...afterChange,
      domain: DomainName.optional().describe('only of this domain'),
      by: z.string().optional().describe('only by this user'),
      status: z.enum(changeStatuses).optional(),
      since: z.iso.datetime({ offset: true }).optional().describe('only requested at or after this time'),
    }),
    ...answers(200, 'One page of changes', longListSchema('changes', Change)),
  },
  getChange: {
    access: 'viewer',
    summary: 'Read one change and its outcome',
    description: 'Poll this after a `202` until its state is final.',
    params: AtChange,
    errors: [changeNotFound(7)],
    ...answers(200, 'The change', Change),
  },
  cancelChange: {
    summary: 'Cancel a queued or proposed change',
    description: 'Only a change that is still queued, or that the caller has proposed; nothing of it is sent.',
    params: AtChange,
    errors: [changeNotFound(7), changeNotQueued(7, 'sending')],
    ...answers(200, 'The cancelled change', Change),
  },
  approveChange: {
    params: AtChange,
    summary: 'Approve a proposed change',
    description:
      'For another person than its author, logged in. It is queued if it still adds and removes the records that were proposed. Else 409 `change_outdated` has what was `proposed` and the `changes` that it would make now, which the proposal then shows.',
    errors: [...domainFailures, ...refusals, changeOutdated()],
    ...answers(202, 'The queued change', Change, headersOfQueued),
  },
  rejectChange: {
    params: AtChange,
    summary: 'Reject a proposed change',
    description: 'By whom it could be approved. Nothing of it is sent.',
    body: z
      .strictObject({
        reason: z
          .string()
          .trim()
          .min(1)
          .max(1000)
          // PostgreSQL refuses it, in a restored backup too.
          .refine((text) => !text.includes('\0'), 'must not contain U+0000')
          .optional(),
      })
      .nullish()
      .meta({ id: 'Rejection', examples: [{ reason: 'the address is that of the old server' }] }),
    errors: refusals,
    ...answers(200, 'The rejected change', Change),
  },
})

/** The routes of /api/changes, approvals included. */
export function registerChangeRoutes(app: App, parts: Dependencies) {
  const { ledger, zones } = parts
  app.get(path, { ...routes.listChanges, serializerCompiler: uncheckedJson }, async (request, reply) => {
    const { page, page_size, after, since, ...filter } = request.query
    const { caller } = request
    const seen = { ...filter, domains: caller.domains, since: since === undefined ? undefined : new Date(since) }
    const { changes, ...found } = await ledger.list(seen, { page, page_size, after })
    return { changes: changes.map((change) => describeChange(change, { caller })), ...pageOf(request, reply, found) }
  })
  app.get(`${path}/:id`, routes.getChange, async ({ caller, params }, reply) => {
    const change = await findVisible(ledger, params.id, caller)
    if (!caller.readsAll) requireOwn(change, caller)
    setRetryAfter(reply, change)
    return describeChange(change, { caller, zones: await ledger.zonesOf(change.id) })
  })
  app.delete(`${path}/:id`, routes.cancelChange, async ({ caller, params }) => {
    const change = await findVisible(ledger, params.id, caller)
    requireOwn(change, caller)
    if ((change.status === 'proposed' || caller.writes) && change.by !== caller.username) throw ownProposal()
    return describeChange(await ledger.cancel(change.id), { caller })
  })
  const endHold = async ({ caller }: { caller: Caller }, cancel: boolean) => {
    if (caller.writes) throw onlyProposes()
    const count = await ledger.endHold({ cancel, domains: caller.domains })
    zones.queue.startQueued()
    return { count }
  }
  app.post(`${path}/held/release`, held.releaseHeldChanges, (request) => endHold(request, false))
  app.delete(`${path}/held`, held.cancelHeldChanges, (request) => endHold(request, true))
  registerApprovalRoutes(app, parts)
}

/** POST /api/changes/{id}/approve and …/reject */
function registerApprovalRoutes(app: App, { ledger, zones: writer }: Dependencies) {
  // A token is refused by the handler, whatever it is limited to.
  app.post(`${path}/:id/approve`, routes.approveChange, async ({ caller, log, params }, reply) => {
    const { id, domain: name } = await findProposed(ledger, params.id, caller)
    const domain = readDomain(name)
    if (typeof domain === 'string') throw new Error(`change ${id} has no valid domain`)
    const { change, zones } = await writer.approve(domain, id, caller.username)
    log.info({ change: id, domain: name, by: change.by }, 'change approved')
    setRetryAfter(reply, change)
    reply.header('location', `/api/changes/${id}`)
    return describeChange(change, { caller, zones })
  })
  app.post(`${path}/:id/reject`, routes.rejectChange, async ({ body, caller, log, params }) => {
    const { id, domain } = await findProposed(ledger, params.id, caller)
    const zones = await ledger.zonesOf(id)
    const change = await ledger.reject(id, body?.reason)
    log.info({ change: id, domain, by: change.by }, 'change rejected')
    return describeChange(change, { caller, zones })
  })
}

/** A change that the caller may approve. @throws 403 `own_change`, or 403 for a caller that may only propose. */
async function findProposed(ledger: Ledger, id: number, caller: Caller): Promise<StoredChange> {
  const change = await findVisible(ledger, id, caller)
  if (caller.token || change.by === caller.username) throw ownChange()
  if (caller.writes) throw onlyProposes()
  return change
}

/** @throws 404 for a change of a domain that the caller may not see. */
async function findVisible(ledger: Ledger, id: number, caller: Caller): Promise<StoredChange> {
  const change = await ledger.find(id)
  if (!change || !allowsDomain(caller, change.domain)) throw changeNotFound(id)
  return change
}

// A token limited to records sees its own changes only: others hold other records. Compares ids, as names can be reused.
function requireOwn({ id, caller: author }: StoredChange, caller: Caller) {
  if (caller.records && author !== caller.id) throw changeNotFound(id)
}

/** The events of this service, for GET /api/events and webhooks. */
export const eventSource: EventSource = {
  types: [...changeEvents, ...domainEvents, ...registrarEvents],
  scope: 'domains',
  describe: (event, rights) => {
    if (event.type.startsWith('registrar.')) return event.data as { registrar: string } // As recorded.
    if (event.type.startsWith('domain.')) {
      const { domain, ...days } = event.data as DomainEventData // As recorded.
      return allowsDomain(rights, domain.name) ? { ...withInstant(domain), ...days } : undefined
    }
    const change = changeOf(event)
    return allowsDomain(rights, change.domain) ? describeChange(change, { caller: rights }) : undefined
  },
  example: { type: 'zone.changed', data: change },
}
