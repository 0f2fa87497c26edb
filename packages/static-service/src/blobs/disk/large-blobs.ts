import { mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createDirectory, DataDirError, fsyncDirectory } from '@domains-and-files/persistence'
import type { ContentCoding } from '../../rfc9110/content-codings.ts'
import { blobMode, blobPathOf, contentCodings, folderMode } from '../blob-path.ts'
import { type OpenBlob, openFile, stampOf } from '../blob-reader.ts'
import type { StoredEntry } from '../blob-store.ts'
import { hashBlob, type StoredBlob, type VerifiedContents } from '../integrity.ts'
import { writeWhole } from '../staging-file.ts'

type Proofs = Pick<VerifiedContents, 'recordVerified'>

/** Blobs and compressed forms of more than 32 KiB: files below `blobs`, named by digest. */
export class LargeBlobs {
  readonly #dataDir: string
  readonly #ensureDirectory: EnsureDirectory
  readonly #proofs: Proofs

  constructor(dataDir: string, ensureDirectory: EnsureDirectory, proofs: Proofs) {
    this.#dataDir = dataDir
    this.#ensureDirectory = ensureDirectory
    this.#proofs = proofs
  }

  /** `onClose` is called once the file has been closed, and not if there is none. */
  open(digest: string, coding: ContentCoding, onClose?: () => void): Promise<OpenBlob | undefined> {
    return openFile(this.#fileOf(digest, coding), onClose)
  }

  async sizeOf(digest: string, coding: ContentCoding): Promise<number | undefined> {
    return (await stat(this.#fileOf(digest, coding), { throwIfNoEntry: false }))?.size
  }

  /**
   * Durably publishes a flushed file under its digest. Keeps an existing intact file, on which stored files depend, and
   * replaces a damaged one.
   */
  async publish(file: string, blob: StoredBlob): Promise<void> {
    const isSound = await this.#isSound(blob)
    if (isSound) await rm(file)
    await this.#place(isSound ? undefined : file, blob.digest, 'identity')
  }

  /** Stores a compressed form durably, by way of `tmpFile`, which must not exist. */
  async writeForm(
    { digest, coding, tmpFile }: { digest: string; coding: ContentCoding; tmpFile: string },
    bytes: Buffer,
  ): Promise<void> {
    try {
      {
        await using handle = await open(tmpFile, 'wx', blobMode)
        await writeWhole(handle, bytes)
        await handle.sync()
      }
      await this.#place(tmpFile, digest, coding)
    } catch (error) {
      await rm(tmpFile, { force: true })
      throw error
    }
  }

  /** Removes forms of a blob, or the blob with all its forms, itself last. */
  async remove(digest: string, codings = [...contentCodings].reverse()): Promise<void> {
    for (const coding of codings) await rm(this.#fileOf(digest, coding), { force: true })
  }

  async #isSound({ digest, size }: StoredBlob): Promise<boolean> {
    await using stored = await this.open(digest, 'identity')
    return stored?.size === size && (await hashBlob(stored)).digest === digest
  }

  // Fsyncs the directory in any case: a killed process may not have done so. No need to hash the file: its bytes were
  // just hashed, or just made.
  async #place(from: string | undefined, digest: string, coding: ContentCoding) {
    const file = this.#fileOf(digest, coding)
    await this.#ensureDirectory(dirname(file))
    if (from) await rename(from, file)
    await fsyncDirectory(dirname(file))
    const stamp = stampOf(await stat(file, { bigint: true }))
    this.#proofs.recordVerified({ digest, coding, stamp })
  }

  #fileOf(digest: string, coding: ContentCoding) {
    return join(this.#dataDir, 'blobs', ...blobPathOf(digest, coding))
  }
}

/** Creates the directories of a store where they are missing, and empties `tmp`. */
export async function openDirectories(dataDir: string): Promise<EnsureDirectory> {
  await createDirectory(dataDir)
  const ensure = ensureBelow(dataDir)
  const tmp = join(dataDir, 'tmp')
  for (const directory of [join(dataDir, 'blobs'), join(dataDir, 'uploads'), tmp]) await ensure(directory)
  for (const name of await readdir(tmp)) await rm(join(tmp, name), { recursive: true })
  await demandRename(dataDir)
  return ensure
}

// Tries a rename: comparing device numbers is not enough, since renames fail between two mounts of one device.
async function demandRename(dataDir: string) {
  const names = ['tmp', 'blobs'].map((name) => join(dataDir, name, 'rename-test'))
  const [from = '', to = ''] = names
  try {
    await writeFile(from, '')
    await rename(from, to)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : ''
    if (code === 'EXDEV') throw new DataDirError(separateFileSystems(dataDir))
    // A full disk is no reason to refuse the start: files are served, and can be deleted.
    if (code !== 'ENOSPC' && code !== 'EDQUOT') throw error
  } finally {
    for (const name of names) await rm(name, { force: true })
  }
}

const separateFileSystems = (dataDir: string) =>
  `Cannot start: blobs and tmp in ${dataDir} are on different file systems: put all of DATA_DIR on one.`

/** Creates a directory below the root, and its parents, where they are missing. */
export type EnsureDirectory = (directory: string) => Promise<void>

/**
 * Resolves once the entry of each directory is fsynced, for concurrent callers too, and for a directory that existed: the
 * process that created it may have been killed before the fsync.
 */
export function ensureBelow(root: string): EnsureDirectory {
  // As `join` writes it: DATA_DIR may be `./data` or `/data/`.
  const ensured = new Map([[join(root, '.'), Promise.resolve()]])
  return function ensure(directory: string): Promise<void> {
    const created = ensured.get(directory) ?? ensure(dirname(directory)).then(() => create(directory))
    ensured.set(directory, created)
    created.catch(() => ensured.delete(directory))
    return created
  }
}

async function create(directory: string) {
  // Not `recursive`: then Node reports a failing disk as ENOENT.
  await mkdir(directory, { mode: folderMode }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  await fsyncDirectory(dirname(directory))
}

/** The names of the directories in `blobs`: the first two hex digits of digests. */
export const listShards = (dataDir: string): Promise<string[]> => list(join(dataDir, 'blobs'))

/** Lists the files of one directory of `blobs`, without opening any. */
export async function listFiles(dataDir: string, prefix: string): Promise<StoredEntry[]> {
  const entries: StoredEntry[] = []
  for (const folder of await list(join(dataDir, 'blobs', prefix))) {
    for (const file of await list(join(dataDir, 'blobs', prefix, folder))) {
      const name = join('blobs', prefix, folder, file)
      const digest = file.slice(0, 64)
      const isOwn =
        /^[0-9a-f]{64}$/.test(digest) &&
        contentCodings.some((coding) => join('blobs', ...blobPathOf(digest, coding)) === name)
      entries.push(isOwn ? { name, digest } : { name })
    }
  }
  return entries
}

const list = (folder: string) =>
  readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return []
    throw error
  })
