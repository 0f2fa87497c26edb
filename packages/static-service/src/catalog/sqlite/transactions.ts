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
  readonly #countChanges: Statement<[], number>

  constructor(db: Database) {
    this.#db = db
    this.#rows = new FileRows(db)
    // Not `on conflict do nothing`: that would use up a number, and the last number is the count.
    this.#addVersion = db.prepare(
      `insert into versions (version, changelog, created_by, created_at)
       select @version, @changelog, @createdBy, @createdAt
       where not exists (select 1 from versions where version = @version)
       returning id, version, changelog, created_by createdBy, created_at createdAt`,
    )
    this.#countChanges = db.prepare<[], number>('select total_changes()').pluck()
  }

  /** Commands of several requests in one commit; a rejected one leaves the others in effect. */
  commit(commands: CatalogCommand[]): Outcome[] {
    try {
      return this.#db
        .transaction(() => commands.map((each) => this.#tryUnprotected(each)))
        .immediate()
    } catch (error) {
      if (!(error instanceof Rejected)) throw error
      if (commands.length === 1) return [refusal(error)]
    }
    return this.#db
      .transaction(() => commands.map((each) => this.#tryInSavepoint(each)))
      .immediate()
  }

  // Savepoints are expensive: with each, FTS5 writes the terms it has gathered. Most rejections precede any change.
  #tryUnprotected(command: CatalogCommand): Outcome {
    const before = this.#countChanges.get()
    try {
      return this.#apply(command)
    } catch (error) {
      if (error instanceof Rejected && this.#countChanges.get() === before) return refusal(error)
      throw error
    }
  }

  #tryInSavepoint(command: CatalogCommand): Outcome {
    try {
      return this.#db.transaction(() => this.#apply(command))()
    } catch (error) {
      if (error instanceof Rejected) return refusal(error)
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

const refusal = ({ reason, path }: Rejected): Outcome => ({ refused: reason, path })
