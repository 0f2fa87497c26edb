import { type Postgres, Probe } from '@domains-and-files/persistence'
import type { ContentTransaction } from '../../blobs/s3/content-commit.ts'
import { Catalog, type CatalogOptions, type CatalogStatus, type RulesCheck } from '../catalog.ts'
import { type CatalogCommand, ChangeGroups } from '../changes/change-groups.ts'
import { Queries, type Totals } from '../queries.ts'
import { type CatalogReads, catalogReads } from '../reads.ts'
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
  const queries = new Queries(postgres)
  const probe = await StatusProbe.start(() => queries.readStatus())
  const catalog = new PostgresCatalog(postgres, { probe, options })
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
  readonly #probe: StatusProbe
  #pendingQueries = 0

  constructor(
    postgres: Postgres,
    { probe, options }: { probe: StatusProbe; options: PostgresCatalogOptions },
  ) {
    super(postgres, options)
    this.#postgres = postgres
    this.#groups = new ChangeGroups({ sql: postgres, ...options })
    this.#files = new FileLookup(postgres)
    this.#probe = probe
    const here = catalogReads(postgres)
    this.reads = {
      ...here,
      list: (query) => this.#counted(here.list(query)),
      tree: (query) => this.#counted(here.tree(query)),
    }
  }

  find(path: string) {
    return this.#files.find(path)
  }

  override checkRules(check: RulesCheck): void {
    this.#files.checkRules = check
  }

  status(): CatalogStatus {
    return { isAvailable: this.#postgres.isAvailable, ...this.#probe.seen }
  }

  get waitingQueries(): number {
    return this.#files.waiting + this.#pendingQueries
  }

  protected async commit(commands: CatalogCommand[]) {
    const committed = await this.#groups.commit(commands)
    for (const [at, { name, input }] of commands.entries())
      if (name === 'record' && !('error' in (committed.outcomes[at] ?? {})))
        this.#probe.addVersion(input.version)
    return committed
  }

  protected closeDatabase(): Promise<void> {
    return this.#probe.close()
  }

  async #counted<Result>(query: Promise<Result>): Promise<Result> {
    this.#pendingQueries += 1
    try {
      return await query
    } finally {
      this.#pendingQueries -= 1
    }
  }
}

type Seen = Pick<CatalogStatus, 'totals' | 'newestVersion'>

type Read = () => Promise<Totals & { newestVersion: string | null }>

const intervalMs = 2000

/** Counters for health checks and metrics, read in the background; up to two seconds old. */
export class StatusProbe {
  readonly #probe: Probe
  #seen: Seen
  #addedVersions = 0

  /** Resolves when the counters have been read once. */
  static async start(read: Read): Promise<StatusProbe> {
    return new StatusProbe(read, split(await read()))
  }

  private constructor(read: Read, seen: Seen) {
    this.#seen = seen
    this.#probe = new Probe({
      check: async () => {
        const added = this.#addedVersions
        const seen = split(await read())
        // A version added meanwhile may be newer than the one that was read.
        const isOlder = added !== this.#addedVersions
        this.#seen = isOlder ? { ...seen, newestVersion: this.#seen.newestVersion } : seen
      },
      intervalMs,
      onLost: () => {
        this.#seen = { ...this.#seen, totals: undefined }
      },
    })
  }

  get seen(): Seen {
    return this.#seen
  }

  /** Shows a version that this process recorded at once, without waiting for the next probe. */
  addVersion(newestVersion: string): void {
    this.#addedVersions += 1
    this.#seen = { ...this.#seen, newestVersion }
  }

  close(): Promise<void> {
    return this.#probe.close()
  }
}

const split = ({ newestVersion, ...totals }: Totals & { newestVersion: string | null }): Seen => ({
  totals,
  newestVersion,
})
