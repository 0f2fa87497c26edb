import { randomUUID } from 'node:crypto'
import { notAllowed } from '../errors.ts'
import type { Role } from '../rights.ts'
import {
  isActive,
  oidcPrefix,
  replaceUser,
  type User,
  Username,
  type Users,
  updateUsers,
} from '../users/user.ts'

/** A person as the provider describes it. */
export interface Identity {
  issuer: string
  /** Permanent id at the issuer. */
  subject: string
  /** Undefined: the provider sent none, or an unverified email address. */
  name: string | undefined
  groups: string[]
}

/**
 * The user of an identity. The first login binds the username to the identity.
 * @throws {HttpError} 403 `not_allowed` if the username is invalid, bound to another identity, or barred.
 */
export async function bindUser(users: Users, identity: Identity, role: Role): Promise<User> {
  const { issuer, subject, name = '' } = identity
  const named = Username.safeParse(oidcPrefix + name)
  if (name === '' || !named.success)
    throw notAllowed('The provider sent no name that can be a username: ask the operator')
  const username = named.data
  const isBound = ({ oidc }: User) => oidc?.issuer === issuer && oidc.subject === subject
  const known = await users.find(username)
  if (known && isBound(known) && known.role === role) return known
  let bound: User | undefined
  await updateUsers(users, (all) => {
    const before = all.find((user) => user.username === username)
    if (before && !isActive(before)) throw notAllowed(`${username} was removed: ask the operator`)
    if (before?.oidc?.subject !== undefined && !isBound(before))
      throw notAllowed(`${username} is another person's: ask the operator`)
    bound = {
      ...{ created_at: new Date().toISOString(), id: randomUUID(), ...before },
      ...{ username, role, oidc: { issuer, subject } },
    }
    return before ? replaceUser(all, bound) : [...all, bound]
  })
  if (!bound) throw new Error('The users were not updated')
  return bound
}
