import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { appendEvents, ofTypes } from '@domains-and-files/events'
import { HttpError } from '@domains-and-files/http'
import { list, name, one, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'

/** A link to a file, or to the files below a folder. Instants are milliseconds since 1970. */
export interface Link {
  id: string
  /** Of a file; of a folder with a trailing slash. */
  path: string
  name: string | null
  /** The `Caller.id` of its maker. */
  maker: string
  by: string
  createdAt: number
  expiresAt: number
  /** Null: unlimited. */
  downloadsLeft: number | null
}

const table = name('links')
const downloads = name('link_downloads')
const columns = sql`id, path, name, maker, by_user "by", created_at "createdAt", expires_at "expiresAt",
  downloads_left "downloadsLeft"`

const maxLinks = 1000
const underWayMs = 3_600_000

/** Links with a secret token; stores its digest only. Requests read the database, so changes take effect at once. */
export class Links {
  readonly #database: Sql
  readonly #now: () => number
  onUsedUp: () => void = () => undefined

  constructor(database: Sql, now: () => number = Date.now) {
    this.#database = database
    this.#now = now
  }

  /** @returns the link, and its token. @throws {HttpError} `too_many_links`. */
  async create(
    request: Pick<Link, 'path' | 'name' | 'maker' | 'by' | 'downloadsLeft'> & { lifetimeS: number },
  ): Promise<{ link: Link; token: string }> {
    const { lifetimeS, ...wanted } = request
    const token = randomBytes(16).toString('base64url')
    const createdAt = this.#now()
    const link = { id: randomUUID(), ...wanted, createdAt, expiresAt: createdAt + lifetimeS * 1000 }
    await this.#database.transaction(async (transaction) => {
      await transaction.run(sql`delete from ${table} where expires_at <= ${createdAt} and used_up_at is null`)
      await transaction.run(sql`delete from ${downloads} where until <= ${createdAt}`)
      const own = sql`select count(*) as count from ${table} where maker = ${link.maker}`
      if ((await one<{ count: number }>(transaction, own)).count >= maxLinks) throw tooManyLinks()
      await transaction.run(sql`
        insert into ${table} (id, digest, path, name, maker, by_user, created_at, expires_at, downloads_left)
        values (${link.id}, ${digestOf(token)}, ${link.path}, ${link.name}, ${link.maker}, ${link.by}, ${createdAt},
          ${link.expiresAt}, ${link.downloadsLeft})`)
    })
    return { link, token }
  }

  /** The link of this token, unless it has expired. */
  find(token: string): Promise<Link | undefined> {
    return this.#database.get<Link>(
      sql`select ${columns} from ${table} where digest = ${digestOf(token)} and expires_at > ${this.#now()}`,
    )
  }

  /** Links that have not expired, newest first; undefined `by` or `path`: of all users or paths. */
  list({ by, path }: { by?: string | undefined; path?: string | undefined }): Promise<Link[]> {
    const ofUser = by === undefined ? sql`` : sql`and by_user = ${by}`
    const toPath = path === undefined ? sql`` : sql`and path = ${path}`
    return this.#database.all<Link>(
      sql`select ${columns} from ${table} where expires_at > ${this.#now()} ${ofUser} ${toPath}
        order by created_at desc, id`,
    )
  }

  /** Revokes a link, if `isAllowed`. @throws {HttpError} `link_not_found`. */
  async remove(id: string, isAllowed: (link: Link) => boolean): Promise<void> {
    const link = await this.#database.get<Link>(sql`select ${columns} from ${table} where id = ${id}`)
    if (!link || !isAllowed(link)) throw linkNotFound()
    await this.#database.run(sql`delete from ${table} where id = ${id}`)
  }

  /** Whether a download of this file has begun in the last hour. */
  async isUnderWay({ id }: Link, path: string, reader: SqlTransaction = this.#database) {
    const now = this.#now()
    const found = await reader.get(sql`
      select 1 one from ${downloads} join ${table} on id = link
      where link = ${id} and ${downloads}.path = ${path} and until > ${now} and expires_at > ${now}`)
    return found !== undefined
  }

  /**
   * Whether the link permits sending bytes of this file now. A request from the first byte on counts as a download. A
   * later range belongs to a download of the last hour; without one it counts as well.
   */
  async admit(link: Link, path: string, isFromStart: boolean): Promise<boolean> {
    const { id, downloadsLeft } = link
    if (downloadsLeft === null) return true
    const now = this.#now()
    const left = await this.#database.transaction(async (transaction) => {
      if (!isFromStart && (await this.isUnderWay(link, path, transaction))) return Infinity
      const counted = await transaction.get<{ left: number }>(sql`
        update ${table} set downloads_left = downloads_left - 1,
          used_up_at = case when downloads_left = 1 then cast(${now} as bigint) end
        where id = ${id} and downloads_left > 0 and expires_at > ${now} returning downloads_left "left"`)
      if (!counted) return -1
      await transaction.run(sql`
        insert into ${downloads} (link, path, until) values (${id}, ${path}, ${now + underWayMs})
        on conflict (link, path) do update set until = excluded.until`)
      return counted.left
    })
    if (left === 0) this.onUsedUp()
    return left >= 0
  }

  /** Records the events of used-up links. After a failure or a crash the next call records them. */
  async recordUsedUp(record: (links: Link[]) => Promise<void>): Promise<void> {
    const used = await this.#database.all<Link>(
      sql`select ${columns} from ${table} where used_up_at is not null order by used_up_at, id`,
    )
    if (used.length === 0) return
    await record(used)
    await this.#database.run(sql`update ${table} set used_up_at = null where id in (${list(used.map(({ id }) => id))})`)
  }
}

/** Records an event per used-up link, once: skips known ones, as a process may crash before it marks them as recorded. */
export async function recordUsedUp({ transaction }: { transaction: SqlTransaction }, links: Link[]): Promise<void> {
  const type = 'link.used_up'
  const texts = list(links.map((link) => JSON.stringify(link)))
  const known = await transaction.all<{ data: string }>(
    sql`select data from ${name('events')} where ${ofTypes([type])} and data in (${texts})`,
  )
  const ids = new Set(known.map(({ data }) => (JSON.parse(data) as Link).id)) // As stored below.
  const added = links.filter(({ id }) => !ids.has(id)).map((data) => ({ type, data }))
  await appendEvents(transaction, added)
}

const digestOf = (token: string) => createHash('sha256').update(token).digest('hex')

/** Matches a link token in the path of a request, in any spelling; never a path below /static. */
export const linkTokens = [/\/(?:l|%6c)(?:\/|%2f)+[^/?#]+(?<!^\/static\/.*)/gi, '/l/[redacted]'] as const

export const linkNotFound = () =>
  new HttpError(404, 'link_not_found', 'No such link, or it has expired: ask for another')

export const tooManyLinks = () => new HttpError(409, 'too_many_links', `You have ${maxLinks} links: delete some first`)
