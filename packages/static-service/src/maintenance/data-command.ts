import { type BlobSource, type KeptFile, runDataCommand } from '@domains-and-files/persistence'
import { blobMode, blobPathOf, folderMode, maxSmallBytes } from '../blobs/blob-path.ts'
import { databaseName } from '../catalog/sqlite/open-sqlite.ts'
import { openReader } from '../sqlite/connection.ts'
import { contentRows } from './content-rows.ts'

// Compressed forms are not backed up: the service makes them again on demand.
const layout = {
  service: 'static-service',
  database: databaseName,
  folders: ['blobs', 'tmp'],
  contents: readContents,
  contentModes: { directory: folderMode, file: blobMode },
  rows: contentRows,
  pathsOf,
}

const args = process.argv.slice(2)
const dataDir = process.env.DATA_DIR || 'data/static-service'
const places = { dataDir, usersFile: process.env.USERS_FILE || undefined }
const needsData = args[0] === 'backup' || args[0] === 'restore'
process.exitCode =
  needsData && (process.env.DATABASE_URL || process.env.DATABASE_URL_FILE)
    ? await runShared()
    : await runDataCommand(layout, args, places)

async function runShared(): Promise<number> {
  const { runSharedCommand } = await import('./shared/shared-command.ts')
  return runSharedCommand(layout, args, places)
}

function readContents(database: string): BlobSource {
  const db = openReader(database)
  const total = db
    .prepare<[], Pick<BlobSource, 'count' | 'bytes'>>(
      `select count(*) count, coalesce(sum(size), 0) bytes from blobs where size > ${maxSmallBytes}`,
    )
    .get()
  db.close()
  return { count: total?.count ?? 0, bytes: total?.bytes ?? 0, each: readEach(database) }
}

function* readEach(database: string): Generator<KeptFile> {
  const db = openReader(database)
  try {
    const rows = db.prepare<[], { digest: string; size: number }>(
      `select digest, size from blobs where size > ${maxSmallBytes}`,
    )
    for (const { digest, size } of rows.iterate()) {
      yield { file: ['blobs', ...blobPathOf(digest)].join('/'), size, sha256: digest }
    }
  } finally {
    db.close()
  }
}

function pathsOf(database: string, digest: string): string[] {
  const db = openReader(database)
  try {
    return db
      .prepare<[string], string>('select path from files where digest = ? order by path')
      .pluck()
      .all(digest)
  } finally {
    db.close()
  }
}
