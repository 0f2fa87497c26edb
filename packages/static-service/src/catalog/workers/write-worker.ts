import { dirname } from 'node:path'
import { workerData } from 'node:worker_threads'
import { openDatabase } from '../database.ts'
import { type CatalogCommand, type Outcome, Transactions } from '../transactions.ts'
import { Unflushed } from '../unflushed-contents.ts'
import { serveCalls } from './worker-rpc.ts'

// The one thread that changes the catalog: it waits for the disk, and nobody else has to.

const file = String(workerData)
const db = openDatabase(file)
const unflushed = new Unflushed(db, dirname(file))
const changes = new Transactions(db, unflushed)

const tasks = {
  ready: (_input: null) => {
    const synchronous = Number(db.pragma('synchronous', { simple: true }))
    return { synchronous, restored: unflushed.restore() }
  },
  commit,
  closeGeneration: (_input: null) => unflushed.close(),
  forgetGeneration: (generation: number) => unflushed.forget(generation),
}

export type WriteWorkerMethods = typeof tasks

serveCalls(tasks, () => db.close())

// Files first: what is committed has its content. One that cannot be written fails its own change only.
function commit(input: CatalogCommand[]): Outcome[] {
  const failed = new Map(input.flatMap((change) => tryWrite(change)))
  const done = changes.commit(input.filter((change) => !failed.has(change))).values()
  return input.map((change) => {
    const outcome = failed.get(change) ?? done.next().value
    if (!outcome) throw new Error('a change has no outcome')
    return outcome
  })
}

function tryWrite(change: CatalogCommand): [CatalogCommand, Outcome][] {
  if (change.kind !== 'put') return []
  try {
    unflushed.write(change.contents)
    return []
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    return [[change, { failed: String(error), code }]]
  }
}
