import { constants, existsSync, linkSync, statSync } from 'node:fs'
import { copyFile, mkdir, open, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { fsyncDirectory } from '../durable-files.ts'
import { unreadable } from './damage.ts'
import type { KeptFile } from './kept-file.ts'
import { digestOf } from './manifest.ts'
import type { Damage } from './rows.ts'

interface Copying {
  /** The folder with the contents, and further ones that may have them: linked from the first where that works. */
  from: string[]
  to: string
  /** The modes of the directories and files that are created; by default private ones. */
  modes?: { directory: number; file: number } | undefined
  signal: AbortSignal
  onContent: (content: { size: number }) => void
  onDamage: (damage: Damage) => void
}

/**
 * Copies contents from one folder to another, durably: as hard links, since a content is never written again, and where
 * links are impossible (another disk, another owner) as copies. A content that is missing is left out; one that cannot
 * be read is reported.
 */
export async function copyBlobs(contents: Iterable<KeptFile>, copying: Copying): Promise<void> {
  const { from, to, modes, signal, onContent, onDamage } = copying
  const directories = new Set([to])

  await forEach(contents, signal, async ({ file, size, sha256 }) => {
    await createParents(dirname(file))
    const isLinked = from.some((folder) => tryLink(join(folder, file), join(to, file)))
    const [first = to] = from
    if (!isLinked) {
      await copyWhole(join(first, file), join(to, file), modes?.file).catch(async (error) => {
        await rm(join(to, file), { force: true })
        if (isDestinationFault(error)) throw error
        onDamage({ sha256, fault: unreadable(error) })
      })
    }
    onContent({ size })
  })
  await forEach(directories, signal, fsyncDirectory)

  async function createParents(directory: string) {
    if (directories.has(join(to, directory))) return
    await mkdir(join(to, directory), { recursive: true, mode: modes?.directory ?? 0o700 })
    for (let each = directory; each !== '.'; each = dirname(each)) directories.add(join(to, each))
  }
}

interface Checking {
  folder: string
  /** Reads every byte; else only sizes are compared. */
  hash: boolean
  signal: AbortSignal
  onContent: (content: { size: number }) => void
  onDamage: (damage: Damage) => void
}

/** Compares content files with their sizes, or with their digests. */
export async function verifyBlobs(contents: Iterable<KeptFile>, checking: Checking): Promise<void> {
  const { folder, hash, signal, onContent, onDamage } = checking
  await forEach(contents, signal, async (kept) => {
    const fault = await findFault(join(folder, kept.file), kept, hash)
    if (fault) onDamage({ sha256: kept.sha256, fault })
    onContent(kept)
  })
}

// Several at a time, to overlap disk waits. All have ended when it settles, also when one has failed.
async function forEach<Item>(
  items: Iterable<Item>,
  signal: AbortSignal,
  work: (item: Item) => Promise<void>,
) {
  const waiting = items[Symbol.iterator]()
  let count = 0
  const workOn = async () => {
    try {
      for (let next = waiting.next(); !next.done; next = waiting.next()) {
        await work(next.value)
        count += 1
        if (count % 64 === 0) await nextIteration() // Lets signals be delivered if nothing was awaited.
        signal.throwIfAborted()
      }
    } finally {
      waiting.return?.() // After a failure the other workers find nothing left.
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: 8 }, workOn))
  const failed = ends.find((end) => end.status === 'rejected')
  if (failed) throw failed.reason
}

async function findFault(file: string, { size, sha256 }: KeptFile, hash: boolean) {
  try {
    const found = statSync(file, { throwIfNoEntry: false })
    if (!found) return 'is missing'
    if (found.size !== size) return `has ${found.size} bytes instead of ${size}`
    if (hash && (await digestOf(file)) !== sha256) return 'has been altered'
    return undefined
  } catch (error) {
    return unreadable(error)
  }
}

// Any other fault of the link is met by the copy as well, which reports it.
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch {
    return false
  }
}

// A missing content is reported by the check of all contents at the end.
async function copyWhole(from: string, to: string, mode: number | undefined) {
  if (!existsSync(from)) return
  await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
  await using handle = await open(to, 'r+')
  if (mode !== undefined) await handle.chmod(mode)
  await handle.sync()
}

const isDestinationFault = (error: unknown) =>
  error instanceof Error &&
  'code' in error &&
  /^(?:ENOSPC|EDQUOT|EROFS|EEXIST)$/.test(String(error.code))
