import { type Postgres, Probe } from '@domains-and-files/persistence'
import type { ContentTransaction } from '../../blobs/s3/content-commit.ts'
import { Catalog, type CatalogStatus, type RulesCheck } from '../catalog.ts'
import { type CatalogCommand, ChangeGroups } from '../changes/change-groups.ts'
import type { CatalogOptions } from '../changes/group.ts'
import { type CatalogReads, catalogReads, type Totals } from '../reads.ts'
import { FileLookup } from './file-lookup.ts'

interface PostgresCatalogOptions extends CatalogOptions {
  /** Blob rows, which change in the transactions of the catalog. */
  contents: ContentTransaction
  isCommand?: boolean
}

/**
 * The catalog in PostgreSQL, for any number of processes. The schema must have `catalogMigrations`. The caller closes
 * `postgres` after the catalog.
 */
export async function openPostgresCatalog(
  postgres: Postgres,
  { isCommand = false, ...options }: PostgresCatalogOptions,
): Promise<Catalog> {
  const catalog = new PostgresCatalog(postgres, options)
  await catalog.readTotals()
  if (!isCommand) catalog.startBackground()
  return catalog
}

/** Serves no file from memory: each look-up reads the database. */
class PostgresCatalog extends Catalog {
  readonly isExclusive = false
  readonly reads: CatalogReads
  readonly #postgres: Postgres
  readonly #groups: ChangeGroups
  readonly #files: FileLookup
  readonly #probe: Probe
  #totals: Totals | undefined
  #totalsReads = 0
  #shownRead = 0

  constructor(postgres: Postgres, options: PostgresCatalogOptions) {
    super(postgres, options, (commands) => this.#commit(commands))
    this.#postgres = postgres
    this.#groups = new ChangeGroups({ sql: postgres, ...options })
    this.#files = new FileLookup(postgres)
    this.#probe = new Probe({
      check: () => this.readTotals(),
      intervalMs: 2000,
      onLost: () => undefined, // Health checks ask the pool.
    })
    this.reads = catalogReads(postgres)
  }

  find(path: string) {
    return this.#files.find(path)
  }

  override checkRules(check: RulesCheck): void {
    this.#files.checkRules = check
  }

  status(): CatalogStatus {
    return { isAvailable: this.#postgres.isAvailable, totals: this.#totals }
  }

  /** Reads the counters for `status`. Of concurrent calls the last one counts. */
  async readTotals(): Promise<void> {
    this.#totalsReads += 1
    const read = this.#totalsReads
    const totals = await this.totals()
    if (read < this.#shownRead) return
    this.#shownRead = read
    this.#totals = totals
  }

  get waitingQueries(): number {
    return this.#files.waiting
  }

  async #commit(commands: CatalogCommand[]) {
    const committed = await this.#groups.commit(commands)
    // A health check shows a new version at once. If this fails, it shows it later.
    if (commands.some(({ name }) => name === 'record')) await this.readTotals().catch(() => undefined)
    return committed
  }

  protected closeDatabase(): Promise<void> {
    return this.#probe.close()
  }
}
