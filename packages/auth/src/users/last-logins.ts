import { list, name, type Sql, sql } from '@domains-and-files/persistence'
import { limitsOf, type Rights } from '../rights.ts'
import type { User } from './user.ts'

interface LastLogin {
  at: Date
  /** Of a single sign-on. */
  rights: Pick<Rights, 'role' | 'domains' | 'folders'> | undefined
}

const table = name('last_logins')

/** When users last logged in to this service. */
export class LastLogins {
  readonly #database: Sql
  readonly #now: () => number
  readonly #report: (error: unknown) => void

  /** `report` receives failed writes: a full disk keeps nobody from logging in. */
  constructor(database: Sql, now: () => number, report: (error: unknown) => void) {
    this.#database = database
    this.#now = now
    this.#report = report
  }

  record(username: string): void {
    this.#store(username, null).catch(this.#report)
  }

  /** Stores the rights that a single sign-on gave, too, for the API tokens of the user. */
  recordRights({ username, role, domains, folders }: User): Promise<void> {
    return this.#store(username, JSON.stringify({ role, ...limitsOf({ domains, folders }) }))
  }

  /** By username, those of a service's users who have logged in. */
  async find(usernames: string[]): Promise<Map<string, LastLogin>> {
    const rows = await this.#database.all<{ username: string; at: number; rights: string | null }>(
      sql`select username, at, rights from ${table} where username in (${list(usernames)})`,
    )
    return new Map(
      rows.map(({ username, at, rights }) => [
        username,
        { at: new Date(at), rights: rights === null ? undefined : JSON.parse(rights) },
      ]),
    )
  }

  /** A user with the rights that it has now: one of single sign-on has those of its last login to this service. */
  async withRights(user: User | undefined): Promise<User | undefined> {
    if (!user?.oidc) return user
    const rights = (await this.find([user.username])).get(user.username)?.rights
    return rights && { ...user, ...rights }
  }

  async #store(username: string, rights: string | null) {
    await this.#database.run(
      sql`insert into ${table} (username, at, rights) values (${username}, ${this.#now()}, ${rights})
        on conflict (username) do update set at = excluded.at, rights = excluded.rights`,
    )
  }
}
