import { dirname } from 'node:path'
import { workerData } from 'node:worker_threads'
import { SqliteSql } from '@domains-and-files/persistence'
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

const methods = { commit }

export type WriteWorkerMethods = typeof methods

serveCalls(methods, () => sql.close())

async function commit(commands: CatalogCommand[]) {
  const outcomes = await groups.commit(commands)
  if (commands.some(isAlone)) truncateLog()
  return outcomes.map(plainOutcome)
}

// A large change leaves a large log. Readers of an older state are not waited for: the writer has no busy timeout.
function truncateLog() {
  try {
    sql.database.pragma('wal_checkpoint(TRUNCATE)')
  } catch {
    // On a full disk the log stays: the next commit writes over it.
  }
}
