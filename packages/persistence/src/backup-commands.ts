import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { verifiedName } from './backup/archived-service.ts'
import type { runDataCommand as run } from './backup/data-command.ts'

/**
 * The commands `backup`, `restore` and `check` of a service; resolves with the exit status. Loaded on demand,
 * since services and their worker threads do not need it, and zod alone takes 30 ms and 8 MiB in each.
 */
export const runDataCommand: typeof run = async (...args) =>
  (await import('./backup/data-command.ts')).runDataCommand(...args)

/** Start of the newest backup in a folder, and the last verification of one, in milliseconds since 1970; NaN: never. */
export async function readBackupTimes(folder: string): Promise<{ made: number; verified: number }> {
  const snapshots = join(folder, 'snapshots')
  const names = (await readdir(snapshots).catch(() => [])).filter((name) => !name.includes('.'))
  const verified = await Promise.all(
    names.map((name) => readFile(join(snapshots, name, verifiedName), 'utf8').catch(() => '')),
  )
  return { made: newest(names.map(timeOf)), verified: newest(verified) }
}

// The name of a snapshot is its time, with `-` for `:` and `.`.
const timeOf = (name: string) => name.replace(/^(.{13})-(..)-(..)-(.{4})$/, '$1:$2:$3.$4')

const newest = (times: string[]) => Date.parse(times.toSorted().at(-1)?.trim() ?? '')
