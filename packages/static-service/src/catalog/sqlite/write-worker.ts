import { dirname } from 'node:path'
import { workerData } from 'node:worker_threads'
import { SqliteSql } from '@domains-and-files/persistence'
import { blobDatabaseFile } from '../../blobs/disk/blob-database.ts'
import { type BlobOutcome, openBlobWriter } from '../../blobs/disk/blob-writer.ts'
import { DiskReserve } from '../../sqlite/disk-reserve.ts'
import { plainOutcome, serveCalls } from '../../sqlite/worker-rpc.ts'
import type { CatalogOptions } from '../catalog.ts'
import { ChangeGroups } from '../changes/change-groups.ts'
import { type CatalogCommand, isAlone } from '../changes/commands.ts'
import { tuneWriter } from './open-sqlite.ts'

// The only thread that writes to the catalog: it waits for fsync, the event loop does not.

const { file, ...options }: { file: string } & CatalogOptions = workerData
const sql = new SqliteSql({ file })
tuneWriter(sql)
const disk = new DiskReserve(dirname(file))
const reserve = {
  release() {
    disk.release()
    truncateLog()
  },
  refill: () => disk.refill(),
}
const groups = new ChangeGroups({ sql, reserve, ...options })
let blobs: ReturnType<typeof openBlobWriter> | undefined

const methods = { commit }

export type WriteWorkerMethods = typeof methods

serveCalls(methods, async () => {
  await sql.close()
  await blobs?.close()
})

async function commit(commands: CatalogCommand[]) {
  const failed = await storeContents(commands)
  const outcomes = await groups.commit(commands.filter((each) => !failed.has(each)))
  if (commands.some(isAlone)) truncateLog()
  return commands.flatMap((each) => failed.get(each) ?? outcomes.shift() ?? []).map(plainOutcome)
}

/** Makes the contents durable that came with files; returns the commands for which that failed. */
async function storeContents(commands: CatalogCommand[]) {
  const failed = new Map<CatalogCommand, { error: unknown }>()
  const arrivals = commands.flatMap((command) =>
    command.kind === 'put' ? (command.arrived ?? []).map((content) => ({ command, content })) : [],
  )
  if (arrivals.length === 0) return failed
  blobs ??= openBlobWriter(blobDatabaseFile(dirname(file)))
  const stores = arrivals.map(({ content }) => ({
    ...({ kind: 'store', coding: 'identity' } as const),
    ...content,
  }))
  const outcomes = await blobs
    .commit(stores)
    .catch((error) => stores.map((): BlobOutcome => ({ error })))
  for (const [at, outcome] of outcomes.entries()) {
    const command = arrivals[at]?.command
    if (command && 'error' in outcome) failed.set(command, outcome)
  }
  return failed
}

// A large change leaves a large log. Readers of an older state are not waited for: the writer has no busy timeout.
function truncateLog() {
  try {
    sql.database.pragma('wal_checkpoint(TRUNCATE)')
  } catch {
    // On a full disk the log stays: the next commit writes over it.
  }
}
