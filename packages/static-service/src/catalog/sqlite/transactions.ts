import type { Statement } from 'better-sqlite3'
import type { NewVersion, VersionRow } from '../../files/file-record.ts'
import { applyCommand, summarize } from '../apply-command.ts'
import { type CatalogCommand, type Outcome, Rejected } from '../commands.ts'
import { FreedContents } from '../file-table.ts'
import type { Database } from './database.ts'
import { FileRows } from './file-rows.ts'

/** Changes the catalog: each command whole or not at all, with all counts. */
export class Transactions {
  readonly #db: Database
  readonly #rows: FileRows
  readonly #addVersion: Statement<[Record<string, unknown>], VersionRow>

  constructor(db: Database) {
    this.#db = db
    this.#rows = new FileRows(db)
    this.#addVersion = db.prepare(
      `insert into versions (version, changelog, created_by, created_at)
       values (@version, @changelog, @createdBy, @createdAt) on conflict do nothing
       returning id, version, changelog, created_by createdBy, created_at createdAt`,
    )
  }

  /** Commands of several requests in one commit; a rejected one leaves the others in effect. */
  commit(commands: CatalogCommand[]): Outcome[] {
    const [only, ...others] = commands
    // A single one is not nested: SQLite's statement journal is slow where it is long.
    if (only && others.length === 0) return [this.#tryOne(only)]
    return this.#db.transaction(() => commands.map((command) => this.#tryOne(command))).immediate()
  }

  // A savepoint where there are others, so that it is rolled back alone.
  #tryOne(command: CatalogCommand): Outcome {
    try {
      return this.#db.transaction(() => this.#apply(command)).immediate()
    } catch (error) {
      if (error instanceof Rejected) return { refused: error.reason, path: error.path }
      throw error
    }
  }

  #apply(command: CatalogCommand): Outcome {
    const now = new Date().toISOString()
    switch (command.kind) {
      case 'removeBelow':
        return this.#removeBelow(command.directory)
      case 'record':
        return this.#record(command.version, now)
      default:
        return applyCommand(this.#rows, command, now)
    }
  }

  // In pieces: the rows of a million files would not fit into memory.
  #removeBelow(directory: string): Outcome {
    if (!this.#rows.isDirectory(directory)) throw new Rejected('directory_not_found', directory)
    const freed = new FreedContents()
    let files = 0
    for (let rows = this.#rows.findBelow(directory, 1000); rows.length > 0; ) {
      for (const row of rows) this.#rows.remove(row, freed)
      files += rows.length
      rows = this.#rows.findBelow(directory, 1000)
    }
    return { done: 'remove', files, changed: 'all', ...summarize(freed) }
  }

  #record(version: NewVersion, createdAt: string): Outcome {
    const row = this.#addVersion.get({ ...version, createdAt })
    if (!row) throw new Rejected('version_exists', version.version)
    return { done: 'record', version: row }
  }
}
