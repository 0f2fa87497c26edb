import { type Caller, callerOf } from '@domains-and-files/auth'
import type { FastifyRequest } from 'fastify'
import type { ZoneEdit } from '../dns/edits/zone-edit.ts'
import type { ZoneWrite } from '../zones/zone-write.ts'

/** Who writes, for the ledger. */
export interface WriteContext {
  caller: Caller
  requestId: string
}

export const contextOf = (request: FastifyRequest): WriteContext => ({
  caller: callerOf(request),
  requestId: request.id,
})

/** A write of an integration: these clients know no preconditions and no dry run. */
export const writeOf = ({ caller, requestId }: WriteContext, edit: ZoneEdit): ZoneWrite => ({
  edit,
  ifMatch: undefined,
  dryRun: false,
  force: false,
  by: caller.username,
  token: caller.token?.name,
  recordLimits: caller.records,
  requestId,
})
