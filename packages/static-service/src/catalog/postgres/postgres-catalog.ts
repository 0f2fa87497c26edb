import { BackgroundTask, type Postgres } from '@domains-and-files/persistence'
import { LRUCache } from 'lru-cache'
import type { ContentTransaction } from '../../blobs/s3/content-commit.ts'
import { Catalog, type CatalogStatus, type RulesCheck } from '../catalog.ts'
import { type CatalogCommand, ChangeGroups } from '../changes/change-groups.ts'
import type { CatalogOptions } from '../changes/group.ts'
import { schemaName } from '../migrations.ts'
import { type CatalogReads, catalogReads, type Totals } from '../reads.ts'
import { columnsIn } from '../records.ts'
import { type FileRow, fileColumns } from '../tables.ts'

/**
 * The catalog in PostgreSQL, for any number of processes. The schema must have `catalogMigrations`. The caller closes
 * `postgres` after the catalog.
 */
export async function openPostgresCatalog(
  postgres: Postgres,
  options: CatalogOptions & { contents: ContentTransaction },
): Promise<Catalog> {
  const catalog = new PostgresCatalog(postgres, options)
  await catalog.readTotals()
  return catalog
}

/**
 * Look-ups of one event-loop iteration share a statement. Each reads PostgreSQL: the cache of files only saves sending
 * and parsing unchanged rows. An unchanged file is the same object as before.
 */
class PostgresCatalog extends Catalog {
  readonly isExclusive = false
  readonly reads: CatalogReads
  readonly #postgres: Postgres
  readonly #groups: ChangeGroups
  readonly #probe: BackgroundTask
  readonly #known = new LRUCache<string, KnownFile>({ max: maxKnown })
  #waiting = new Map<string, PromiseWithResolvers<FileRow | undefined>>()
  #running = 0
  /** Each starts the next look-ups. */
  #immediate: NodeJS.Immediate | undefined
  #timer: NodeJS.Timeout | undefined
  #checkRules: RulesCheck | undefined
  #totals: Totals | undefined

  constructor(postgres: Postgres, options: Parameters<typeof openPostgresCatalog>[1]) {
    super(postgres, options, (commands) => this.#commit(commands))
    this.#postgres = postgres
    this.#groups = new ChangeGroups({ sql: postgres, ...options })
    this.#probe = new BackgroundTask({
      run: () => this.readTotals(),
      intervalMs: 2000,
      onError: () => undefined, // Health checks ask the pool.
    })
    this.reads = catalogReads(postgres)
  }

  find(path: string): Promise<FileRow | undefined> {
    if (this.#waiting.size === 0) this.#schedule()
    return this.#waiting.getOrInsertComputed(path, () => Promise.withResolvers()).promise
  }

  override checkRules(check: RulesCheck): void {
    this.#checkRules = check
  }

  status(): CatalogStatus {
    return { isAvailable: this.#postgres.isAvailable, totals: this.#totals }
  }

  /** Reads the counters for `status`. */
  async readTotals(): Promise<void> {
    this.#totals = await this.totals()
  }

  get waitingQueries(): number {
    return this.#waiting.size + this.#running
  }

  async #commit(commands: CatalogCommand[]) {
    const committed = await this.#groups.commit(commands)
    // A health check shows a new version at once. If this fails, it shows it later.
    if (commands.some(({ name }) => name === 'record')) await this.#probe.runAgain()
    return committed
  }

  protected closeDatabase(): Promise<void> {
    return this.#probe.close()
  }

  // A stalled statement must not block later look-ups: they would wait for its time limit.
  #schedule() {
    if (this.#running < maxRunning) this.#immediate ??= setImmediate(() => void this.#run())
    else this.#timer ??= setTimeout(() => void this.#run(), slowMs)
  }

  async #run() {
    clearImmediate(this.#immediate)
    clearTimeout(this.#timer)
    this.#immediate = undefined
    this.#timer = undefined
    const lookups = this.#waiting
    if (lookups.size === 0) return
    this.#waiting = new Map()
    this.#running += 1
    try {
      const rows = await this.#read([...lookups.keys()])
      for (const [path, { resolve }] of lookups) resolve(rows.get(path))
    } catch (error) {
      for (const { reject } of lookups.values()) reject(error)
    } finally {
      this.#running -= 1
      if (this.#waiting.size > 0) this.#schedule()
    }
  }

  async #read(paths: string[]): Promise<Map<string, FileRow>> {
    const known = new Map(paths.map((path) => [path, this.#known.get(path)]))
    const revisions = paths.map((path) => known.get(path)?.revision ?? '')
    const found = await this.#postgres.query<Found & Record<string, unknown>>(lookup, [paths, revisions])
    const [first] = found
    if (first) await this.#checkRules?.(first.rulesVersion)
    const rows = new Map<string, FileRow>()
    for (const { path, revision, row } of found) {
      const current = row ? { row, revision } : known.get(path)
      if (!current) throw new Error(`the row of ${path} is neither known nor sent`)
      this.#known.set(path, current)
      rows.set(path, current.row)
    }
    return rows
  }
}

interface KnownFile {
  row: FileRow
  revision: string
}

/** A row per existing file; `row` is null if the cached one is current. */
interface Found {
  path: string
  revision: string
  row: FileRow | null
  /** Of the access rules. */
  rulesVersion: number
}

const maxKnown = 10_000

// Two: while PostgreSQL works on one, the next is collected.
const maxRunning = 2

// Longer than a look-up takes.
const slowMs = 50

const fields = columnsIn(fileColumns).map(({ member, column }) => `'${member}', ${column}`)
const rowJson = `json_build_object(${fields.join(', ')})`

// The number of a change is not enough: a standby that is promoted without the last changes gives their numbers again.
// Hashed, since each look-up sends it both ways; as text, since numbers of 64 bits are not exact in JavaScript.
const revision = 'hashtextextended(updated_at || digest, change_id)::text'

// Without a join: PostgreSQL plans it each time, which takes longer than the look-ups.
const lookup = `
  select path, (select version from ${schemaName}.access_version) "rulesVersion", ${revision} "revision",
    case when ${revision} <> ($2::text[])[array_position($1::text[], path)] then ${rowJson} end "row"
  from ${schemaName}.files where path = any($1)`
