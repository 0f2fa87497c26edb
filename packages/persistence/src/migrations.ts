import { DataDirError } from './errors.ts'

/** The part of better-sqlite3 that migrations use. */
interface Database {
  pragma(source: string, options?: { simple: true }): unknown
  exec(source: string): unknown
  transaction(run: () => void): () => void
}

/**
 * Applies the migrations (SQL, in order) that a database has not seen, each in a transaction of its own. `user_version`
 * counts those applied. @throws {DataDirError} when a newer version of the service has applied more.
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
      'The database in DATA_DIR is of a newer version of this service: start that version, or restore a backup made by this one.',
    ),
    { code: 'DATABASE_NEWER' },
  )
