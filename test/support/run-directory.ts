import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const sharedMemory = '/dev/shm'
const minBytes = 4 * 1024 ** 3

/**
 * Creates the directory for all temporary files of a test run: in memory where there is room, unless TMPDIR names another
 * place. Tests make thousands of small files, and ext4 takes up to ten times the CPU time of tmpfs for each.
 */
export function createRunDirectory(): string {
  const isInMemory = process.env.TMPDIR === undefined && isUsable()
  if (isInMemory) removeAbandoned()
  // A short name, because paths of sockets must be.
  return mkdtempSync(join(isInMemory ? sharedMemory : tmpdir(), `test-run-${process.pid}-`))
}

/** Frees the memory of runs that were killed. */
function removeAbandoned() {
  for (const name of readdirSync(sharedMemory)) {
    const pid = /^test-run-(\d+)-/.exec(name)?.[1]
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue
    try {
      rmSync(join(sharedMemory, name), { recursive: true, force: true })
    } catch {
      // Another run removes it, too, or it belongs to another user.
    }
  }
}

/** Whether shared memory has room and programs may run from it. */
function isUsable(): boolean {
  try {
    const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n')
    const [, , type, options = ''] =
      mounts.map((line) => line.split(' ')).findLast(([, path]) => path === sharedMemory) ?? []
    const { bavail, bsize } = statfsSync(sharedMemory)
    return type === 'tmpfs' && !options.split(',').includes('noexec') && bavail * bsize >= minBytes
  } catch {
    return false
  }
}
