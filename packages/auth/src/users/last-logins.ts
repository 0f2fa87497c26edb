import { list, name, type Sql, sql } from '@domains-and-files/persistence'
import { limitsOf, type Rights } from '../rights.ts'
import type { User } from './user.ts'

interface LastLogin {
  at: Date
  /** Rights of a login by single sign-on. */
  rights: Pick<Rights, 'role' | 'domains' | 'folders'> | undefined
}

interface Options {
  database: Sql
  now: () => number
  /** Receives failed writes: a full disk keeps nobody from logging in. */
  report: (error: unknown) => void
}

const table = name('last_logins')

/** When users last logged in to this service. */
export class LastLogins {
  readonly #options: Options

  constructor(options: Options) {
    this.#options = options
  }

  record(username: string): void {
    this.#store(username, null).catch(this.#options.report)
  }

  /** Also stores the rights that single sign-on granted: the user's API tokens have them between logins. */
  recordRights({ username, role, domains, folders }: User): Promise<void> {
    return this.#store(username, JSON.stringify({ role, ...limitsOf({ domains, folders }) }))
  }

  /** Last logins by username; a user who never logged in is absent. */
  async find(usernames: string[]): Promise<Map<string, LastLogin>> {
    const rows = await this.#options.database.all<{
      username: string
      at: number
      rights: string | null
    }>(sql`select username, at, rights from ${table} where username in (${list(usernames)})`)
    return new Map(
      rows.map(({ username, at, rights }) => [
        username,
        { at: new Date(at), rights: rights === null ? undefined : JSON.parse(rights) },
      ]),
    )
  }

  /** A user with its present rights: for single sign-on, those of the last login to this service; undefined before one. */
  async withRights(user: User | undefined): Promise<User | undefined> {
    if (!user?.oidc) return user
    const rights = (await this.find([user.username])).get(user.username)?.rights
    return rights && { ...user, ...rights }
  }

  async #store(username: string, rights: string | null) {
    const { database, now } = this.#options
    await database.run(
      sql`insert into ${table} (username, at, rights) values (${username}, ${now()}, ${rights})
        on conflict (username) do update set at = excluded.at, rights = excluded.rights`,
    )
  }
}
