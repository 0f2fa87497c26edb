import { statSync } from 'node:fs'
import { eventMigrations } from '@domains-and-files/events'
import { SqliteSql } from '@domains-and-files/persistence'
import { catalogMigrations } from '../migrations.ts'

/** The catalog's file in a data folder. */
export const databaseFile = (dataDir: string) => `${dataDir}/static-service.sqlite`

/** Whether a data folder has a catalog. SQLite takes an empty file for a new one, in which every content is an orphan. */
export const hasCatalog = (dataDir: string) =>
  (statSync(databaseFile(dataDir), { throwIfNoEntry: false })?.size ?? 0) > 0

/** The catalog's database, created and migrated where needed. */
export function openDatabase(file: string): SqliteSql {
  return new SqliteSql({ file, migrations: { catalog: catalogMigrations, ...eventMigrations } })
}
