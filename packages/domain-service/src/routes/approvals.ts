import { type Caller, callerOf, onlyProposes } from '@domains-and-files/auth'
import { type App, answers } from '@domains-and-files/http'
import { z } from 'zod'
import { readDomain } from '../dns/domain-name.ts'
import { changeClosed, changeNotFound, changeOutdated, ownChange } from '../errors.ts'
import type { Ledger, StoredChange } from '../ledger/ledger.ts'
import type { ZoneWriter } from '../zones/zone-writer.ts'
import { Change, describeChange, setRetryAfter } from './change-schema.ts'
import { findVisible } from './changes.ts'
import { domainFailures } from './openapi-examples.ts'
import { accepted, ChangeId } from './zone/zone-request.ts'

const refusals = [changeNotFound(7), ownChange(), changeClosed(7, 'rejected')]
const { location, 'retry-after': retryAfter } = accepted.headers

const approveSchema = {
  operationId: 'approveChange',
  summary: 'Approve a proposed change',
  description:
    'For another person than its author, logged in. It is queued if it still adds and removes the records that were proposed. Else 409 `change_outdated` has what was `proposed` and the `changes` that it would make now, which the proposal then shows.',
  tags: ['history'],
  params: z.strictObject({ id: ChangeId }),
  errors: [...domainFailures, ...refusals, changeOutdated()],
  ...answers(202, 'The queued change', Change, { location, 'retry-after': retryAfter }),
}

const rejectSchema = {
  operationId: 'rejectChange',
  summary: 'Reject a proposed change',
  description: 'By whom it could be approved. Nothing of it is sent.',
  tags: ['history'],
  params: z.strictObject({ id: ChangeId }),
  body: z
    .strictObject({ reason: z.string().trim().min(1).max(1000).optional() })
    .nullish()
    .meta({ id: 'Rejection', examples: [{ reason: 'the address is that of the old server' }] }),
  errors: refusals,
  ...answers(200, 'The rejected change', Change),
}

/** POST /api/changes/{id}/approve and …/reject */
export function registerApprovalRoutes(
  app: App,
  { ledger, zones: { approvals } }: { ledger: Ledger; zones: ZoneWriter },
) {
  // A token is refused by the handler, whatever it is limited to.
  const config = { access: 'editor', enforcesRecordLimits: true } as const
  const path = '/api/changes/:id'
  app.post(`${path}/approve`, { config, schema: approveSchema }, async (request, reply) => {
    const caller = callerOf(request)
    const { id, domain: name } = await findProposed(ledger, request.params.id, caller)
    const domain = readDomain(name)
    if (typeof domain === 'string') throw new Error(`change ${id} has no valid domain`)
    const { change, zones } = await approvals.approve(domain, id, caller.username)
    request.log.info({ change: id, domain: name, by: change.by }, 'change approved')
    setRetryAfter(reply, change)
    reply.code(202).header('location', `/api/changes/${id}`)
    return describeChange(change, { caller, zones })
  })
  app.post(`${path}/reject`, { config, schema: rejectSchema }, async (request) => {
    const caller = callerOf(request)
    const { id, domain } = await findProposed(ledger, request.params.id, caller)
    const { change, zones } = await approvals.reject(id, request.body?.reason)
    request.log.info({ change: id, domain, by: change.by }, 'change rejected')
    return describeChange(change, { caller, zones })
  })
}

/** A change that the caller may approve. @throws 403 `own_change`, and for who may only propose. */
async function findProposed(ledger: Ledger, id: number, caller: Caller): Promise<StoredChange> {
  const change = await findVisible(ledger, id, caller)
  if (caller.token || change.by === caller.username) throw ownChange()
  if (caller.writes) throw onlyProposes()
  return change
}
