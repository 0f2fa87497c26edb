import { workerData } from 'node:worker_threads'
import { openReader } from '../../../sqlite/connection.ts'
import { serveCalls } from '../../../sqlite/worker-rpc.ts'
import type { ListQuery } from '../../list-query.ts'
import type { TreeQuery } from '../../tree.ts'
import { writeTree } from '../directory-tree.ts'
import { listVersions } from '../queries.ts'
import { FileListing } from '../search/list-files.ts'

// The thread for queries that take longer than a lookup.

const db = openReader(String(workerData))
const listing = new FileListing(db)

const methods = {
  list: (query: ListQuery) => listing.list(query),
  tree: (query: TreeQuery) => writeTree(db, query),
  versions: (span: { skip: number; take: number }) => listVersions(db, span),
}

export type ReadWorkerMethods = typeof methods

serveCalls(methods, () => db.close())
