import type { Statement } from 'better-sqlite3'
import type { FileRow, NewFile, NewVersion, VersionRow } from '../../files/file-record.ts'
import { type Conditions, holds } from '../../rfc9110/entity-tags.ts'
import { type CatalogCommand, type Outcome, type PutCommand, Rejected } from '../commands.ts'
import type { Database } from './database.ts'
import { FileRows, FreedContents } from './file-rows.ts'
import { moveDirectory, moveFile } from './move-files.ts'

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
      case 'put':
        return this.#put(command, now)
      case 'remove':
        return this.#remove([command.path], command.conditions)
      case 'removeAll':
        return this.#remove(command.paths)
      case 'removeBelow':
        return this.#removeBelow(command.directory)
      case 'moveFile':
        return moveFile(this.#rows, command, now)
      case 'moveDirectory':
        return moveDirectory(this.#rows, command, now)
      case 'record':
        return this.#record(command.version, now)
    }
  }

  #put({ files, conditions, quota }: PutCommand, now: string): Outcome {
    const freed = new FreedContents()
    let wasNew = true
    const rows = files.map((file) => {
      const before = this.#rows.find(file.path)
      if (!before && this.#rows.isDirectory(file.path)) {
        throw new Rejected('path_conflict', file.path)
      }
      if (!holds(conditions, before)) throw new Rejected('precondition_failed', file.path)
      if (before) wasNew = false
      return before ? this.#replace(before, file, { now, freed }) : this.#add(file, { now, freed })
    })
    if (quota !== undefined && this.#rows.storedSize > quota) {
      throw new Rejected('quota_exceeded', '')
    }
    const changed = files.map(({ path }) => path)
    return { done: 'put', rows, wasNew, freed: freed.digests, changed }
  }

  #add(file: NewFile, { now, freed }: Change): FileRow {
    const row = this.#rows.add({ ...file, createdAt: now, updatedAt: now }, freed)
    if (!row) throw new Rejected('path_conflict', file.path)
    return row
  }

  #replace(before: FileRow, file: NewFile, { now, freed }: Change): FileRow {
    const row = { ...before, ...file, updatedAt: now }
    this.#rows.replace(before, row, freed)
    return row
  }

  #remove(paths: string[], conditions: Conditions = {}): Outcome {
    const freed = new FreedContents()
    for (const path of paths) {
      const row = this.#rows.find(path)
      if (!row) throw new Rejected('file_not_found', path)
      if (!holds(conditions, row)) throw new Rejected('precondition_failed', path)
      this.#rows.remove(row, freed)
    }
    return { done: 'remove', files: paths.length, changed: paths, ...summarize(freed) }
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

interface Change {
  now: string
  freed: FreedContents
}

const summarize = (freed: FreedContents) => ({ bytesFreed: freed.bytes, freed: freed.digests })
