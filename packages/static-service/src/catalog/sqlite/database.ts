import { type Database, openReader } from '../../sqlite/connection.ts'
import { openMigrated } from '../../sqlite/migrated-database.ts'
import { migrations } from './migrations.ts'

export { type Database, openReader }

export const databaseName = 'static-service.sqlite'

/** The catalog's file in a data folder. */
export const databaseFile = (dataDir: string) => `${dataDir}/${databaseName}`

/** The catalog, created and migrated where needed. One connection at a time may do that. */
export const openDatabase = (file: string): Database => openMigrated(file, migrations)
