import { DataDirError } from './errors.ts'

/** What better-sqlite3 offers, as far as it is needed here. */
interface Database {
  pragma(source: string, options?: { simple: true }): unknown
  exec(source: string): unknown
  transaction(run: () => void): () => void
}

/**
 * Brings a database up to date: each of the migrations (SQL, in their order) that it has not seen, whole or not at all.
 * How many it has seen is its `user_version`. @throws {DataDirError} when it has seen more than there are.
 */
export function migrate(db: Database, migrations: string[]): void {
  const version = Number(db.pragma('user_version', { simple: true }))
  if (version > migrations.length) throw newer()
  for (const [at, sql] of migrations.entries()) {
    if (at < version) continue
    db.transaction(() => {
      db.exec(sql)
      db.pragma(`user_version = ${at + 1}`)
    })()
  }
}

// An error that crosses threads keeps its code, not its class.
const newer = () =>
  Object.assign(
    new DataDirError(
      'The database in DATA_DIR is of a newer version of this service: start that version, or restore a backup of this one.',
    ),
    { code: 'DATABASE_NEWER' },
  )
