import { setImmediate } from 'node:timers/promises'
import { HttpError } from '@domains-and-files/http'
import { name, now, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'

/** Who may read the files below a folder, or one file. Instants are ISO 8601. */
export interface AccessRule {
  /** With a trailing slash. */
  prefix: string
  public: boolean
  by: string
  at: string
}

const table = name('access_rules')
const versionTable = name('access_version')
const rulesWithVersion = sql`select version, prefix, is_public, by_user "by", at
  from ${versionTable} left join ${table} on 1 = 1`

/** Without a prefix: there are no rules. */
interface Row extends Pick<AccessRule, 'by' | 'at'> {
  version: number
  prefix: string | null
  is_public: number
}

interface Options {
  isPublicByDefault: boolean
  /** Whether only this process changes the rules. */
  isExclusive: boolean
}

/**
 * Decides which files are public: the rule with the longest prefix applies. Rules are in memory. A change takes effect in
 * this process before its promise resolves; other replicas get the rules' version with each file look-up (`catchUp`).
 */
export class AccessRules {
  readonly isExclusive: boolean
  readonly #isPublicByDefault: boolean
  readonly #database: Sql
  #rules = new Map<string, AccessRule>()
  #refreshing: Promise<void> | undefined
  /** Another one after each change of the rules. Set here only. */
  version = -1
  /** Called after each change of the rules in effect. */
  onChange = () => {}

  private constructor(database: Sql, { isPublicByDefault, isExclusive }: Options) {
    this.isExclusive = isExclusive
    this.#isPublicByDefault = isPublicByDefault
    this.#database = database
  }

  static async open(database: Sql, options: Options): Promise<AccessRules> {
    const rules = new AccessRules(database, options)
    await rules.#load()
    return rules
  }

  isPublic(path: string): boolean {
    if (this.#rules.size === 0) return this.#isPublicByDefault
    for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
      const rule = this.#rules.get(`${path.slice(0, end)}/`)
      if (rule) return rule.public
    }
    return this.#isPublicByDefault
  }

  /** Loads the rules if this is not the version of those in memory. */
  catchUp(version: number): Promise<void> | undefined {
    return version === this.version ? undefined : this.#load()
  }

  /** Loads changes of other replicas. Calls of one event-loop iteration share a query. */
  async refresh(): Promise<void> {
    if (this.isExclusive) return
    this.#refreshing ??= setImmediate().then(async () => {
      this.#refreshing = undefined // Later calls must see later commits.
      const found = await this.#database.get<{ version: number }>(sql`select version from ${versionTable}`)
      await this.catchUp(found?.version ?? 0)
    })
    await this.#refreshing
  }

  async list(): Promise<AccessRule[]> {
    await this.refresh()
    return [...this.#rules.values()].sort((one, other) => (one.prefix < other.prefix ? -1 : 1))
  }

  async set({ prefix, public: isPublic, by, at }: AccessRule): Promise<void> {
    await this.#change((transaction) =>
      transaction.run(
        sql`insert into ${table} (prefix, is_public, by_user, at)
          values (${prefix}, ${Number(isPublic)}, ${by}, ${at})
          on conflict (prefix) do update
            set is_public = excluded.is_public, by_user = excluded.by_user, at = excluded.at`,
      ),
    )
  }

  /** @throws {HttpError} `rule_not_found`. */
  async remove(prefix: string): Promise<void> {
    await this.#change(async (transaction) => {
      const removed = await transaction.run(sql`delete from ${table} where prefix = ${prefix}`)
      if (removed === 0) throw ruleNotFound(prefix)
    })
  }

  // Reads the rules in the transaction: a read after the commit could fail, and leave old rules in effect.
  async #change(work: (transaction: SqlTransaction) => Promise<unknown>) {
    const before = this.version
    const rows = await this.#database.transaction(async (transaction) => {
      // First statement: its row lock serializes concurrent changes. The time, since a standby that is promoted without
      // the last changes would give their numbers again.
      await transaction.run(
        sql`update ${versionTable} set version = case when version < ${now} then ${now} else version + 1 end`,
      )
      await work(transaction)
      return transaction.all<Row>(rulesWithVersion)
    })
    this.#adopt(rows, before)
  }

  async #load(): Promise<void> {
    const before = this.version
    this.#adopt(await this.#database.all<Row>(rulesWithVersion), before)
  }

  // Of concurrent loads the newest version wins, in whatever order they end. An older one than `before`, that of the rules
  // when the load began, is of a database that has lost changes.
  #adopt(rows: Row[], before: number) {
    const version = rows[0]?.version ?? 0
    if (version <= this.version && (this.version !== before || version === before)) return
    this.#rules = new Map(
      rows.flatMap(({ prefix, is_public, by, at }) =>
        prefix === null ? [] : [[prefix, { prefix, public: is_public === 1, by, at }]],
      ),
    )
    this.version = version
    this.onChange()
  }
}

export const ruleNotFound = (prefix: string) => new HttpError(404, 'rule_not_found', `No rule for ${prefix}`)
