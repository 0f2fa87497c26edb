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
  /** Identifies it at its issuer for ever. */
  subject: string
  /** Undefined: the provider sent none that counts. */
  name: string | undefined
  groups: string[]
}

/**
 * The user of an identity, whose name is bound to it at its first login.
 * @throws {HttpError} 403 `not_allowed` if the name cannot be used, is bound to another identity, or barred.
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

/** Bars a name, also one that has not logged in yet. */
export function barName(users: User[], username: string): User[] {
  const known = users.find((user) => user.username === username)
  const user: User = known ?? { username, role: 'viewer', oidc: {} }
  return known ? replaceUser(users, bar(user)) : [...users, bar(user)]
}

/** Lets a name log in again: the account that it is bound to or, with `rebind`, the next one that has it. */
export const allowName = (users: User[], username: string, rebind: boolean): User[] =>
  users.map((user) => {
    if (!user.oidc || user.username !== username) return user
    const { is_barred: _, ...account } = user.oidc
    return { ...user, oidc: rebind ? {} : account }
  })
