import { workerData } from 'node:worker_threads'
import { SqliteSql } from '@domains-and-files/persistence'
import { serveCalls } from '../../sqlite/worker-commits.ts'
import { catalogReads } from '../reads.ts'

// The thread for queries that take longer than a look-up.

const sql = new SqliteSql({ file: String(workerData), isReadOnly: true })
const methods = { ...catalogReads(sql) }

export type ReadWorkerMethods = typeof methods

serveCalls(methods, () => sql.close())
