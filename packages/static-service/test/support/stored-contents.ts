import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { blobDatabaseFile } from '../../src/blobs/disk/small-blobs.ts'
import { blobPathOf } from '../../src/blobs/stored-blob.ts'
import { type ContentCoding, contentCodings } from '../../src/rfc9110/content-codings.ts'

/** The SHA-256 digest of a content, in hex. */
export const digestOf = (content: string | Buffer) => createHash('sha256').update(content).digest('hex')

/** The paths of all files below a folder. */
export const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

/** How many descriptors of stored contents this process has open. */
export async function openBlobs(): Promise<number> {
  const links = await Promise.all(
    (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
  )
  return links.filter((link) => link.includes('/blobs/')).length
}

/** All that a store holds: files below `blobs`, `tmp` and `uploads`, and rows of the content database as `row <digest> <coding>`. */
export function storedIn(dataDir: string): string[] {
  return [
    ...['blobs', 'tmp', 'uploads'].flatMap((folder) => filesBelow(join(dataDir, folder))),
    ...rowsIn(dataDir).map(({ digest, coding }) => `row ${digest} ${coding}`),
  ]
}

/** The rows of the content database. */
export function rowsIn(dataDir: string): { digest: string; coding: ContentCoding }[] {
  const file = blobDatabaseFile(dataDir)
  if (!existsSync(file)) return []
  const db = new Sqlite(file, { readonly: true })
  try {
    return db
      .prepare<[], { digest: string; coding: number }>(
        'select lower(hex(digest)) digest, coding from contents order by digest, coding',
      )
      .all()
      .map(({ digest, coding }) => ({ digest, coding: contentCodings[coding] ?? 'identity' }))
  } finally {
    db.close()
  }
}

/** Changes the byte in the middle, whatever it is. */
export function flip(bytes: Buffer): Buffer {
  const flipped = Buffer.from(bytes)
  flipped[bytes.length >> 1] = ~(bytes[bytes.length >> 1] ?? 0)
  return flipped
}

/** Changes the stored bytes of a content, wherever they are, without the service; undefined removes them. */
export function alter(
  dataDir: string,
  { digest, coding = 'identity' }: { digest: string; coding?: ContentCoding | undefined },
  change: (bytes: Buffer) => Buffer | undefined,
): void {
  const db = new Sqlite(blobDatabaseFile(dataDir))
  try {
    const key = [Buffer.from(digest, 'hex'), contentCodings.indexOf(coding)] as const
    const row = db
      .prepare<[Buffer, number], Buffer>('select bytes from contents where digest = ? and coding = ?')
      .pluck()
      .get(...key)
    const bytes = row && change(row)
    if (row && bytes) {
      db.prepare('update contents set bytes = ? where digest = ? and coding = ?').run(bytes, ...key)
    } else if (row) {
      db.prepare('delete from contents where digest = ? and coding = ?').run(...key)
    } else alterFile(join(dataDir, 'blobs', ...blobPathOf(digest, coding)), change)
  } finally {
    db.close()
  }
}

function alterFile(file: string, change: (bytes: Buffer) => Buffer | undefined) {
  const bytes = change(readFileSync(file))
  if (!bytes) return rmSync(file)
  const mtime = () => statSync(file, { bigint: true }).mtimeNs
  const before = mtime()
  // Until the kernel's clock has moved on: it stands still for some milliseconds.
  do writeFileSync(file, bytes)
  while (mtime() === before)
}
