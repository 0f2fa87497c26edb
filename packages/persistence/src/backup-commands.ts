import type { runDataCommand as run } from './backup/data-command.ts'

/**
 * The commands `backup`, `restore`, `check` and `prune` of a service; resolves with the exit status. Loaded on use: services
 * and their worker threads need none of it, and zod alone takes 30 ms and 8 MiB in each.
 */
export const runDataCommand: typeof run = async (...args) => {
  const commands = await import('./backup/data-command.ts')
  return commands.runDataCommand(...args)
}
