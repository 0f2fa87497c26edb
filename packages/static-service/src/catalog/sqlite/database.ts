import { dirname } from 'node:path'
import { moveUnflushedContents } from '../../blobs/disk/content-database.ts'
import { type Database, openReader, openWriter } from '../../sqlite/connection.ts'
import { migrations } from './migrations.ts'

export { type Database, openReader }

export const databaseName = 'static-service.sqlite'

/** The catalog's file in a data folder. */
export const databaseFile = (dataDir: string) => `${dataDir}/${databaseName}`

/** The catalog, created and migrated where needed. One connection at a time may do that. */
export const openDatabase = (file: string): Database =>
  openWriter(file, migrations, (db) => moveUnflushedContents(db, dirname(file)))
