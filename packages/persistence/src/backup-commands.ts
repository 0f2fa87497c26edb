import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { verifiedName } from './backup/archive.ts'
import type { runDataCommand as run } from './backup/data-command.ts'

/**
 * The commands `backup`, `restore`, `check` and `prune` of a service; resolves with the exit status. Loaded on use: services
 * and their worker threads need none of it, and zod alone takes 30 ms and 8 MiB in each.
 */
export const runDataCommand: typeof run = async (...args) => {
  const commands = await import('./backup/data-command.ts')
  return commands.runDataCommand(...args)
}

/** When the newest backup of a folder was begun, and when one was last verified, in milliseconds since 1970; NaN: never. */
export async function readBackupTimes(folder: string): Promise<{ made: number; verified: number }> {
  const snapshots = join(folder, 'snapshots')
  const names = (await readdir(snapshots).catch(() => [])).filter((name) => !name.includes('.'))
  const verified = await Promise.all(
    names.map((name) => readFile(join(snapshots, name, verifiedName), 'utf8').catch(() => '')),
  )
  return { made: newest(names.map(timeOf)), verified: newest(verified) }
}

// A snapshot has the time as its name, without `:` and `.`.
const timeOf = (name: string) => name.replace(/^(.{13})-(..)-(..)-(.{4})$/, '$1:$2:$3.$4')

const newest = (times: string[]) => Date.parse(times.toSorted().at(-1)?.trim() ?? '')
