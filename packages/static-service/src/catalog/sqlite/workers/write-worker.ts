import { dirname } from 'node:path'
import { workerData } from 'node:worker_threads'
import { openWriter } from '../../../sqlite/connection.ts'
import { DiskReserve, isDiskFull } from '../../../sqlite/disk-reserve.ts'
import { serveCalls } from '../../../sqlite/worker-rpc.ts'
import type { CatalogCommand, Outcome } from '../../commands.ts'
import { contentPrefixes, contentsOf } from '../queries.ts'
import { Transactions } from '../transactions.ts'

// The only thread that writes to the catalog: it waits for fsync, the event loop does not.

const file = String(workerData)
const db = openWriter(file)
const transactions = new Transactions(db)
const reserve = new DiskReserve(dirname(file))

const methods = {
  commit,
  // Asked by the sweep at startup, for which no second thread should start.
  contentPrefixes: (_input: null) => contentPrefixes(db),
  contents: (prefix: string) => contentsOf(db, prefix),
}

export type WriteWorkerMethods = typeof methods

serveCalls(methods, () => db.close())

function commit(commands: CatalogCommand[]): Outcome[] {
  const outcomes = tryCommit(commands)
  reserve.refill()
  return outcomes
}

// If the group fails, each command is tried alone: on a full disk, deletions still work where uploads do not.
function tryCommit(commands: CatalogCommand[]): Outcome[] {
  const [command, ...others] = commands
  try {
    return transactions.commit(commands)
  } catch (error) {
    if (others.length > 0) return commands.flatMap((each) => tryCommit([each]))
    if (!command?.kind.startsWith('remove') || !isDiskFull(error)) return [failureOf(error)]
  }
  reserve.release()
  try {
    return transactions.commit([command])
  } catch (error) {
    return [failureOf(error)]
  }
}

function failureOf(error: unknown): Outcome {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return { failed: String(error), code }
}
