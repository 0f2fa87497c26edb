import type { Sql } from '@domains-and-files/persistence'
import { ApiTokens } from './api-tokens/api-tokens.ts'
import { type Caller, callerOfUser } from './rights.ts'
import { Trusts } from './trusts/trusts.ts'
import { LastLogins } from './users/last-logins.ts'
import type { Users } from './users/user.ts'

interface AccountsOptions {
  users: Users
  /** Holds what `accountTables` describes. */
  database: Sql
  /** Of API tokens: `ds_` or `ss_`. */
  prefix: string
  /** Milliseconds since 1970. */
  now?: () => number
  /** Receives failed writes of last-used times, which block no caller: logins work on a full disk. */
  report?: (error: unknown) => void
}

/** The stores that identify callers of a service: users, API tokens, and trusts for workloads. */
export function openAccounts(options: AccountsOptions) {
  const { users, database, prefix, now = Date.now, report = () => undefined } = options
  const lastLogins = new LastLogins(database, now, report)
  /** The user with the rights that it has now. */
  const find = async (username: string) => lastLogins.withRights(await users.find(username))
  const trusts = new Trusts(database)
  const apiTokens = new ApiTokens({ database, find, prefix, now, report })
  /**
   * The caller of a stored `Caller.id`, with its present rights. Undefined if its user or trust was removed, or its API
   * token was revoked or expired.
   */
  const findCaller = async (id: string): Promise<Caller | undefined> => {
    const [, kind, rest = ''] = /^(user|token|trust):(.*)$/s.exec(id) ?? []
    if (kind === 'token') return apiTokens.findCaller(rest)
    const [name = '', ...more] = rest.split(' ')
    if (kind === 'trust') return trusts.findCaller(name, more.join(' '))
    const user = await find(name)
    const caller = user && callerOfUser(user)
    return caller?.id === id ? caller : undefined
  }
  return { users, database, lastLogins, find, trusts, apiTokens, findCaller }
}

export type Accounts = ReturnType<typeof openAccounts>
