import { linkSync } from 'node:fs'
import { chmod, copyFile, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { BackupJob } from './backup-job.ts'
import type { BackupSource } from './backup-source.ts'
import type { EarlierBackup } from './earlier-backup.ts'
import { digestOf, type Manifest } from './manifest.ts'
import { maxSegments } from './rows.ts'

interface Adding {
  source: BackupSource
  partial: string
  /** The catalog of the backup. */
  copy: string
  earlier: EarlierBackup | undefined
}

/** Links the segments of an earlier backup into the new one, and adds one with the rows that they lack. */
export async function addSegment(
  { layout, signal, progress }: BackupJob,
  { source, partial, copy, earlier }: Adding,
): Promise<Manifest['segments']> {
  const { rows } = layout
  if (!rows) return []
  const shared = earlier && earlier.manifest.segments.length < maxSegments ? earlier : undefined
  const segments = shared?.manifest.segments ?? []
  for (const { name } of segments) {
    await linkOrCopy(join(shared?.folder ?? '', name), join(partial, name))
  }
  const name = rows.database.replace(/\.sqlite$/, `-${nextNumber(segments)}.sqlite`)
  const added = await rows.add({
    catalog: copy,
    to: join(partial, name),
    have: segments.map((segment) => join(partial, segment.name)),
    from: await source.openRows(partial, copy),
    signal,
    onContent: progress.content,
  })
  await source.removeRows()
  if (added === 0) {
    await rm(join(partial, name))
    return segments
  }
  return [...segments, { name, sha256: await digestOf(join(partial, name)) }]
}

const nextNumber = (segments: Manifest['segments']) =>
  1 + Math.max(0, ...segments.map(({ name }) => Number(/-(\d+)\./.exec(name)?.[1] ?? 0)))

async function linkOrCopy(from: string, to: string) {
  try {
    linkSync(from, to)
  } catch {
    await copyFile(from, to)
    await chmod(to, 0o600)
    await using handle = await open(to, 'r+')
    await handle.sync()
  }
}
