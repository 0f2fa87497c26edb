import { randomUUID } from 'node:crypto'
import { notAllowed } from '../errors.ts'
import type { Role } from '../rights.ts'
import {
  bar,
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
    const changed = bound
    return before ? all.map((user) => (user === before ? changed : user)) : [...all, changed]
  })
  if (!bound) throw new Error('The users were not updated')
  return bound
}

/** Bars a username, even before its first login. */
export function barName(users: User[], username: string): User[] {
  const known = users.find((user) => user.username === username)
  const user: User = known ?? { username, role: 'viewer', oidc: {} }
  return known ? replaceUser(users, bar(user)) : [...users, bar(user)]
}

/** Lets a barred username log in again. `rebind` frees it for the next identity that logs in with it. */
export const allowName = (users: User[], username: string, rebind: boolean): User[] =>
  users.map((user) => {
    if (!user.oidc || user.username !== username) return user
    const { is_barred: _, ...account } = user.oidc
    return { ...user, oidc: rebind ? {} : account }
  })
