import { globSync } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import {
  type BlobRef,
  createDirectory,
  DataDirError,
  findFault,
  fsyncDirectory,
  type OpenBlob,
  openBlobFile,
  stampOf,
} from '@domains-and-files/persistence'
import { type ContentCoding, contentCodings } from '../../rfc9110/content-codings.ts'
import { writeWhole } from '../staging-file.ts'
import { blobMode, blobPathOf, folderMode, type VerifiedContents } from '../stored-blob.ts'

/** Blobs and compressed forms of more than 32 KiB: files below `blobs`, named by digest. */
export class LargeBlobs {
  readonly #dataDir: string
  readonly #ensureDirectory: EnsureDirectory
  readonly #verified: VerifiedContents

  constructor(dataDir: string, ensureDirectory: EnsureDirectory, verified: VerifiedContents) {
    this.#dataDir = dataDir
    this.#ensureDirectory = ensureDirectory
    this.#verified = verified
  }

  open(digest: string, coding: ContentCoding): Promise<OpenBlob | undefined> {
    return openBlobFile(this.#fileOf(digest, coding))
  }

  async sizeOf(digest: string, coding: ContentCoding): Promise<number | undefined> {
    return (await stat(this.#fileOf(digest, coding), { throwIfNoEntry: false }))?.size
  }

  /** Durably publishes a flushed file. Keeps an intact one of its digest, on which files depend; replaces others. */
  async publish(file: string, blob: BlobRef): Promise<void> {
    await using stored = await this.open(blob.digest, 'identity')
    const isSound = stored?.size === blob.size && (await findFault(stored, blob)) === undefined
    if (isSound) await rm(file)
    await this.#place(isSound ? undefined : file, blob.digest, 'identity')
  }

  /** Stores a compressed form durably, by way of `tmpFile`, which must not exist. */
  async writeForm(digest: string, coding: ContentCoding, { bytes, tmpFile }: { bytes: Buffer; tmpFile: string }) {
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
  async remove(digest: string, codings = contentCodings.toReversed()): Promise<void> {
    for (const coding of codings) await rm(this.#fileOf(digest, coding), { force: true })
  }

  /** Blobs whose digests begin with `prefix`, two hex digits or fewer, without opening any. */
  async digests(prefix: string): Promise<string[]> {
    const blobs = join(this.#dataDir, 'blobs')
    const shards = globSync(prefix.padEnd(2, '?'), { cwd: blobs })
    const paths = await Promise.all(shards.map((shard) => readdir(join(blobs, shard), { recursive: true })))
    return paths.flat().flatMap((path) => /^(..)\/(..\1[0-9a-f]{60})/.exec(path)?.[2] ?? [])
  }

  // Fsyncs the directory in any case: a killed process may not have done so. No need to hash the file: its bytes were
  // just hashed, or just made.
  async #place(from: string | undefined, digest: string, coding: ContentCoding) {
    const file = this.#fileOf(digest, coding)
    await this.#ensureDirectory(dirname(file))
    if (from) await rename(from, file)
    await fsyncDirectory(dirname(file))
    const stamp = stampOf(await stat(file, { bigint: true }))
    this.#verified.recordVerified({ digest, coding, stamp })
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
  const [from, to] = [join(dataDir, 'tmp', 'rename-test'), join(dataDir, 'blobs', 'rename-test')]
  try {
    await writeFile(from, '')
    await rename(from, to)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : ''
    if (code === 'EXDEV')
      throw new DataDirError(
        `Cannot start: blobs and tmp in ${dataDir} are on different file systems: put all of DATA_DIR on one.`,
      )
    // A full disk is no reason to refuse the start: files are served, and can be deleted.
    if (code !== 'ENOSPC' && code !== 'EDQUOT') throw error
  } finally {
    for (const name of [from, to]) await rm(name, { force: true })
  }
}

/**
 * Creates a directory below the root, and its parents, where they are missing. Resolves once the entry of each is
 * fsynced, for concurrent callers too, and for a directory that existed: the process that created it may have been
 * killed before the fsync.
 */
export type EnsureDirectory = (directory: string) => Promise<void>

export function ensureBelow(root: string): EnsureDirectory {
  // As `join` writes it: DATA_DIR may be `./data` or `/data/`.
  const ensured = new Map([[join(root, '.'), Promise.resolve()]])
  return function ensure(directory: string): Promise<void> {
    const created = ensured.getOrInsertComputed(directory, () =>
      ensure(dirname(directory)).then(() => create(directory)),
    )
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
