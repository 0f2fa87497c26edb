import { type BlobSource, type KeptFile, runDataCommand } from '@domains-and-files/persistence'
import { blobPathOf } from '../blobs/blob-path.ts'
import { databaseName, openReader } from '../catalog/database.ts'
import { unflushedIn } from '../catalog/unflushed-contents.ts'

// Compressed forms are not kept: they are made anew when a file is asked for.
const layout = {
  service: 'static-service',
  database: databaseName,
  folders: ['blobs', 'tmp'],
  contents: readContents,
}

const dataDir = process.env.DATA_DIR || 'data/static-service'
process.exitCode = await runDataCommand(layout, process.argv.slice(2), dataDir)

function readContents(database: string): BlobSource {
  const db = openReader(database)
  const total = db
    .prepare<[], Pick<BlobSource, 'count' | 'bytes'>>(
      'select count(*) count, coalesce(sum(size), 0) bytes from blobs',
    )
    .get()
  db.close()
  return { count: total?.count ?? 0, bytes: total?.bytes ?? 0, each: readEach(database) }
}

function* readEach(database: string): Generator<KeptFile> {
  const db = openReader(database)
  try {
    const unflushed = unflushedIn(db)
    const rows = db.prepare<[], { digest: string; size: number }>('select digest, size from blobs')
    for (const { digest, size } of rows.iterate()) {
      const file = ['blobs', ...blobPathOf(digest)].join('/')
      yield { file, size, sha256: digest, isUnflushed: unflushed.has(digest) }
    }
  } finally {
    db.close()
  }
}
