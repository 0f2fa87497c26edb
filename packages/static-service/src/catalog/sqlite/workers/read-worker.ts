import { workerData } from 'node:worker_threads'
import { serveCalls } from '../../../sqlite/worker-rpc.ts'
import type { ListQuery } from '../../list-query.ts'
import type { TreeQuery } from '../../tree.ts'
import { type Database, openReader } from '../database.ts'
import { writeTree } from '../directory-tree.ts'
import { listVersions } from '../queries.ts'
import { FileListing } from '../search/list-files.ts'

// The thread that answers what takes longer than a lookup.

// Opened when it is first asked: the thread starts while the database is still being made.
let opened: Database | undefined
const database = () => {
  opened ??= openReader(String(workerData))
  return opened
}

let listing: FileListing | undefined
const lists = () => {
  listing ??= new FileListing(database())
  return listing
}

const tasks = {
  list: (query: ListQuery) => lists().list(query),
  tree: (query: TreeQuery) => writeTree(database(), query),
  versions: (span: { skip: number; take: number }) => listVersions(database(), span),
  contentPrefixes: (_input: null) =>
    database().prepare<[], string>('select distinct substr(digest, 1, 2) from blobs').pluck().all(),
  contents: (prefix: string) =>
    database()
      .prepare<[string, string], { digest: string; size: number }>(
        'select digest, size from blobs where digest between ? and ?',
      )
      .all(prefix, `${prefix}g`),
}

export type ReadWorkerMethods = typeof tasks

serveCalls(tasks, () => opened?.close())
