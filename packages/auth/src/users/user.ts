import { randomUUID } from 'node:crypto'
import { databaseProblem, HttpError } from '@domains-and-files/http'
import { z } from 'zod'
import { digestOf } from '../api-tokens/token-format.ts'
import * as errors from '../errors.ts'
import { Domains, Folders, Writes, wantedLimits } from '../limits.ts'
import { Password, parsePhc } from '../login/password.ts'
import { limitsOf, Role } from '../rights.ts'

/**
 * A username. Names are compared exactly (`Alice` is not `alice`) after NFC normalization, so that a name does not
 * depend on the keyboard that typed it.
 */
export const Username = z
  .string()
  .normalize('NFC')
  .min(1, 'must not be empty')
  .max(64, 'must have at most 64 characters')
  // Not a pattern of the schema: JSON Schema has no flag for Unicode properties.
  .refine((text) => /^[^\p{C}\p{Z}]+$/u.test(text), 'must have no spaces and no control characters')

/** Prefix of usernames from the OpenID provider: they never equal those of local users. */
export const oidcPrefix = 'oidc:'

/** Prefix of workload names in history and logs. */
export const trustPrefix = 'trust:'

/** Where a user logs in: with a password here, or at the OpenID provider. */
export const Source = z.enum(['local', 'oidc']).describe('where it logs in')

export const sourceOf = (username: string) => (username.startsWith(oidcPrefix) ? 'oidc' : 'local')

const reservedNames = ['domain-service', '.', '..']

/**
 * The name of a user who logs in with a password. `domain-service` is the author of repairs in histories; URLs cannot have
 * `.` and `..` as a segment of their path.
 */
export const LocalUsername = Username.refine(
  (text) => sourceOf(text) === 'local' && !text.startsWith(trustPrefix) && !reservedNames.includes(text),
  'must not begin with oidc: or trust:, nor be domain-service, a dot or two',
).meta({ examples: ['alice'] })

/** Whether a user is not barred: it may log in, and its tokens are valid. */
export const isActive = (user: User) => user.oidc?.is_barred !== true

export const User = z
  .strictObject({
    username: Username,
    role: Role,
    /** Absent until an invited person sets one. */
    password: z.string().refine(parsePhc, 'must be an argon2id PHC string').optional(),
    domains: Domains.optional(),
    folders: Folders.optional(),
    writes: Writes.optional(),
    invite: z.strictObject({ digest: z.string().regex(/^[0-9a-f]{64}$/), expires_at: z.iso.datetime() }).optional(),
    created_at: z.iso.datetime().optional(),
    /** Distinguishes a user from an earlier one of that name. Absent in files written by hand. */
    id: z.string().optional(),
    /** Digest of the session that changed the password: it stays valid. See `keptSessionOf`. */
    kept: z.string().optional(),
    /** Changes when the user logs out everywhere, which ends all earlier sessions. */
    logins: z.string().optional(),
    /** Single sign-on: the identity that the username is bound to. `role` is that of the last login. */
    oidc: z
      .strictObject({
        issuer: z.string().optional(),
        subject: z.string().optional(),
        is_barred: z.boolean().optional(),
      })
      .optional(),
  })
  .refine(
    ({ username, oidc }) => (oidc ? username.startsWith(oidcPrefix) : LocalUsername.safeParse(username).success),
    { path: ['username'], error: 'must not begin with oidc: or trust:' },
  )

export type User = z.infer<typeof User>

export const UserList = z.strictObject({
  users: z
    .array(User)
    .refine(
      (users) => new Set(users.map(({ username }) => username)).size === users.length,
      'must not name a user twice',
    ),
})

/** Fields of a request that changes rights: null gives up a limit. */
export const changedRights = {
  role: Role.optional(),
  domains: wantedLimits.domains.nullable().describe('null: all'),
  folders: wantedLimits.folders.nullable().describe('null: all'),
  writes: wantedLimits.writes.nullable(),
}

export const NewUser = z
  .strictObject({
    username: LocalUsername,
    ...changedRights,
    role: Role,
    password: Password.optional().describe('without one, the response has an `invite`'),
  })
  .meta({ id: 'NewUser' })

/** The user with other rights; undefined keeps one. */
export function changeRights(
  { role, domains, folders, writes, ...user }: User,
  change: z.infer<z.ZodObject<typeof changedRights>>,
): User {
  return { ...user, role: change.role ?? role, ...limitsOf({ domains, folders, writes, ...change }) }
}

/** @throws {HttpError} 404 if there is none. */
export function expectUser(user: User | undefined, username: string): User {
  if (!user) throw errors.userNotFound(username)
  return user
}

/**
 * What is left of a removed user: nothing. One of single sign-on is barred instead, also before its first login, which
 * would create it again. Its new id ends its sessions and API tokens, also after it is allowed again.
 */
export function withoutAccess(username: string, user?: User): User | undefined {
  if (sourceOf(username) !== 'oidc') return undefined
  const oidc = { ...user?.oidc, is_barred: true }
  return { role: 'viewer', ...user, username, oidc, id: randomUUID() }
}

/** The user with a new password, which ends its invitation and all its sessions except `session`. */
export function withPassword({ invite: _, kept: __, ...user }: User, password: string, session?: string): User {
  const changed = { ...user, password }
  return session === undefined ? changed : { ...changed, kept: keptSessionOf(changed, session) }
}

/** The value of `kept` for a session. It differs after each new password and logout everywhere. */
export const keptSessionOf = ({ password, logins }: User, session: string) =>
  digestOf([session, password, logins].join(' '))

/** The store of users: a file, or a table of PostgreSQL. Each look-up sees the last change. */
export interface Users {
  /** Names the store in messages. */
  readonly name: string
  /** Why some users or the last changes are ignored; undefined if none are. */
  readonly fault?: string | undefined
  find(username: string): Promise<User | undefined>
  /** Any user: the hash of an unknown username costs as much as that of this one. */
  first(): Promise<User | undefined>
  list(): Promise<User[]>
  /** Replaces the users by the result of `change`, atomically and exclusively. Nothing changes if it throws. */
  update(change: (users: User[]) => User[]): Promise<void>
}

/**
 * Adds or changes a user, or removes it where `change` returns undefined. Nothing changes if `change` throws.
 * @returns what `change` does. @throws {HttpError} 503 where the users file cannot be changed.
 */
export async function changeUser<Changed extends User | undefined>(
  users: Users,
  username: string,
  change: (before: User | undefined, all: User[]) => Changed,
): Promise<Changed> {
  let changed!: Changed
  const update = (all: User[]) => {
    const before = all.find((user) => user.username === username)
    changed = change(before, all)
    const list = before ? all : [...all, changed]
    return list.flatMap((user) => (user === before ? changed : user) ?? [])
  }
  await users.update(update).catch(explainToClient)
  return changed
}

/** Adds a user. @throws {HttpError} 409 if the name is taken. */
export const addUser = (users: Users, user: User, now: number): Promise<User> =>
  changeUser(users, user.username, (before) => {
    if (before) throw errors.userExists(user.username)
    return { ...user, id: randomUUID(), created_at: new Date(now).toISOString() }
  })

/** For clients, of an error of the store. The cause is for operators. @throws {HttpError} 503 for the users file. */
export function explainToClient(cause: unknown): never {
  throw cause instanceof HttpError || databaseProblem(cause) ? cause : errors.usersUnwritable(cause)
}

/** A change of the users, checked. @throws {z.ZodError} */
export const changeUsers = (users: User[], change: (users: User[]) => User[]): User[] =>
  UserList.parse({ users: change(users) }).users
