import { workerData } from 'node:worker_threads'
import { serveCalls } from '../../sqlite/worker-rpc.ts'
import { openDatabase } from '../database.ts'
import { type CatalogCommand, type Outcome, Transactions } from '../transactions.ts'

// The only thread that writes to the catalog: it waits for fsync, the event loop does not.

const db = openDatabase(String(workerData))
const transactions = new Transactions(db)

const methods = {
  ready: (_input: null) => Number(db.pragma('synchronous', { simple: true })),
  commit,
}

export type WriteWorkerMethods = typeof methods

serveCalls(methods, () => db.close())

// If the group fails, each command is tried alone: on a full disk, deletions still work where uploads do not.
function commit(commands: CatalogCommand[]): Outcome[] {
  try {
    return transactions.commit(commands)
  } catch (error) {
    if (commands.length === 1) return [failureOf(error)]
    return commands.flatMap((command) => commit([command]))
  }
}

function failureOf(error: unknown): Outcome {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return { failed: String(error), code }
}
