import { hash } from 'node:crypto'
import { DataDirError, unreadable } from '../errors.ts'
import { allEnded, type BackupSource, type BlobRef, type ReadableBlob } from './archive.ts'
import { maxSmallBytes, type SmallBlob } from './repository.ts'
import { Snapshot } from './snapshot.ts'
import { DamageList, findFault, type Job } from './verify.ts'

/** With `verify` each byte is read back from the repository. With `skipDamaged` damaged blobs are left out. */
export interface BackupJob extends Job {
  service: string
  source: BackupSource
}

export interface BackupResult {
  snapshot: Snapshot
  damages: DamageList
}

/**
 * Makes an incremental backup while the service may be running: all rows of one snapshot, and the blobs that the
 * repository lacks. After an interruption the next backup reuses the blobs already copied.
 * @throws {DataDirError} naming the damaged files, unless they are skipped.
 */
export async function backUp(job: BackupJob): Promise<BackupResult> {
  const { service, source, repository, signal, progress, skipDamaged } = job
  const damages = new DamageList()
  const begun = await Snapshot.begin(repository.folder, service)
  const blobs = { count: 0, bytes: 0 }
  await source.read({
    async rows(tables, files) {
      for (const table of tables) await begun.addTable(table, signal, progress.rows)
      await begun.addFiles(files)
    },
    async blobs(open) {
      for await (const refs of begun.blobs()) {
        blobs.count += refs.length
        for (const { size } of refs) blobs.bytes += size
      }
      progress.begin('copied', blobs)
      for await (const refs of begun.blobs()) await copyLacking({ job, open, damages }, refs)
    },
  })
  if (!skipDamaged) await damages.refuse(begun)
  const snapshot = await begun.finish({ blobs, damaged: damages.all })
  return { snapshot, damages }
}

interface Copying {
  job: BackupJob
  open: (digest: string) => Promise<ReadableBlob | undefined>
  damages: DamageList
}

/** Copies the blobs that the repository lacks. */
async function copyLacking(copying: Copying, refs: BlobRef[]): Promise<void> {
  const { repository, verify, signal, progress } = copying.job
  const copied: BlobRef[] = []
  const small: SmallBlob[] = []
  for (let at = 0; at < refs.length; at += concurrentCopies) {
    signal.throwIfAborted()
    const group = refs.slice(at, at + concurrentCopies)
    await allEnded(
      group.map(async (ref) => {
        if ((await findFault(repository, ref, verify)) === undefined) return
        copied.push(ref)
        const found = await copyOne(copying, ref)
        if (typeof found === 'object') small.push(found)
        else if (found) copying.damages.add({ digest: ref.digest, fault: found })
      }),
    )
    for (const ref of group) progress.blob(ref)
  }
  repository.addSmall(small) // One fsync for all.
  for (const ref of verify ? copied : []) {
    const fault = await findFault(repository, ref, true)
    if (fault) copying.damages.add({ digest: ref.digest, fault })
  }
}

/** Stores a large blob, or returns a small one for a batch. Returns a text if the blob is damaged: the fault. */
async function copyOne(
  { job: { repository, signal }, open }: Copying,
  ref: BlobRef,
): Promise<string | SmallBlob | undefined> {
  const { digest, size } = ref
  let fault: string | undefined
  const noteFault = (error: unknown): undefined => {
    // Affects all blobs (such as an unreachable store), so abort.
    if (error instanceof DataDirError) throw error
    fault = unreadable(error)
  }
  await using blob = await open(digest).catch(noteFault)
  if (!blob) return fault ?? 'is missing'
  if (blob.size !== size) return `has ${blob.size} bytes instead of ${size}`
  const read: ReadableBlob['read'] = async (...range) =>
    (await blob.read(...range).catch(noteFault)) ?? Buffer.alloc(0)
  if (size > maxSmallBytes) {
    if (await repository.addLarge(ref, read, signal)) return undefined
  } else {
    const bytes = await read(0, size)
    if (hash('sha256', bytes) === digest) return { digest, bytes }
  }
  return fault ?? 'has been altered'
}

// Enough to overlap the latency of disks and stores; each copy buffers 1 MiB.
const concurrentCopies = 16
