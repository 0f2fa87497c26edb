import type { runDataCommand as run } from './backup/data-command.ts'
import type { exportTables as exportAll } from './backup/postgres/export-tables.ts'
import type { importTables as importAll } from './backup/postgres/import-tables.ts'

/**
 * The commands `backup`, `restore` and `check` of a service; resolves with the exit status. Loaded on use: services and
 * their worker threads need none of it, and zod alone takes 30 ms and 8 MiB in each.
 */
export const runDataCommand: typeof run = async (...args) => {
  const commands = await import('./backup/data-command.ts')
  return commands.runDataCommand(...args)
}

/** See `backup/postgres/export-tables.ts`. */
export const exportTables: typeof exportAll = async (...args) => {
  const tables = await import('./backup/postgres/export-tables.ts')
  return tables.exportTables(...args)
}

/** See `backup/postgres/import-tables.ts`. */
export const importTables: typeof importAll = async (...args) => {
  const tables = await import('./backup/postgres/import-tables.ts')
  return tables.importTables(...args)
}
