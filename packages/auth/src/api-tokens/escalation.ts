import { allowsDomain, type Caller, isRoleEnough } from '../authorization.ts'
import type { TokenRequest } from './stored-token.ts'
import { exceedsOwner } from './token-errors.ts'

/** @throws {HttpError} if a token would get rights that its owner lacks. */
export function refuseEscalation(owner: Caller, { role, domains, expires_in }: TokenRequest) {
  if (role && !isRoleEnough(owner.role, role))
    throw exceedsOwner(`A token may have at most your own role, ${owner.role}`)
  if (expires_in === 0 && owner.role !== 'admin')
    throw exceedsOwner('Only an admin can create a token that never expires')
  const foreign = domains?.find((domain) => !isWithin(owner, domain))
  if (foreign !== undefined) throw exceedsOwner(`${foreign} is not among your own domains`)
}

// A pattern `*.example.com` is within the owner's domains if any name below it is.
const isWithin = (owner: Caller, domain: string) =>
  allowsDomain(owner, domain.replace(/^\*/, 'any'))
