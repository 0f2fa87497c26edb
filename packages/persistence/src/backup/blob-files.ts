import { constants, existsSync, linkSync, statSync } from 'node:fs'
import { copyFile, mkdir, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { fsyncDirectory } from '../durable-files.ts'
import { DataDirError } from '../errors.ts'
import type { KeptFile } from './backup.ts'
import { digestOf } from './manifest.ts'

interface Copying {
  from: string
  to: string
  signal: AbortSignal
  onKept: (kept: KeptFile) => void
}

/**
 * Brings contents from one folder into another, durably: by hard links, since a content is never written to again, and
 * where there can be none (another disk, another owner, not flushed yet) by copies.
 */
export async function copyBlobs(contents: Iterable<KeptFile>, copying: Copying): Promise<void> {
  const { from, to, signal, onKept } = copying
  const folders = new Set([to])
  let mayLink = true

  await forEach(contents, signal, async (kept) => {
    await ensure(dirname(kept.file))
    const isLinked =
      mayLink && !kept.isUnflushed && tryLink(join(from, kept.file), join(to, kept.file))
    mayLink &&= isLinked || kept.isUnflushed === true
    if (!isLinked) await copyWhole(join(from, kept.file), join(to, kept.file))
    onKept(kept)
  })
  await forEach(folders, signal, fsyncDirectory)

  async function ensure(folder: string) {
    if (folders.has(join(to, folder))) return
    await mkdir(join(to, folder), { recursive: true, mode: 0o700 })
    for (let each = folder; each !== '.'; each = dirname(each)) folders.add(join(to, each))
  }
}

interface Checking {
  folder: string
  /** Reads every byte; else sizes are compared. */
  hash: boolean
  signal: AbortSignal
  onKept: (kept: KeptFile) => void
}

/** @throws {DataDirError} naming what is missing or damaged. */
export async function verifyBlobs(contents: Iterable<KeptFile>, checking: Checking): Promise<void> {
  const { folder, hash, signal, onKept } = checking
  const faults: string[] = []
  await forEach(contents, signal, async (kept) => {
    const fault = await judge(join(folder, kept.file), kept, hash)
    if (fault) faults.push(`${kept.file} ${fault}`)
    onKept(kept)
  })
  if (faults.length === 0) return
  const named = [...faults.slice(0, 20), ...(faults.length > 20 ? ['…'] : [])].join('\n  ')
  throw new DataDirError(`${faults.length} contents are not whole:\n  ${named}`)
}

// Several at a time, since disks are waited for. All have ended when this has, also when one has failed.
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
        if (count % 64 === 0) await turn() // What needs no waiting holds nothing up: a signal must still be heard.
        signal.throwIfAborted()
      }
    } finally {
      waiting.return?.() // One that fails leaves nothing to the others.
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: 8 }, workOn))
  const failed = ends.find((end) => end.status === 'rejected')
  if (failed) throw failed.reason
}

async function judge(file: string, { size, sha256 }: KeptFile, hash: boolean) {
  const found = statSync(file, { throwIfNoEntry: false })
  if (!found) return 'is missing'
  if (found.size !== size) return `has ${found.size} bytes instead of ${size}`
  if (hash && (await digestOf(file)) !== sha256) return 'has been altered'
  return undefined
}

// Whatever else is wrong, copying meets it too, and tells of it.
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch {
    return false
  }
}

// A content that is missing is not told of here but where all are checked, together with all others.
async function copyWhole(from: string, to: string) {
  if (!existsSync(from)) return
  await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
  await using handle = await open(to, 'r+')
  await handle.sync()
}
