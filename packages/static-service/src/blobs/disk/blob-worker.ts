import { workerData } from 'node:worker_threads'
import { plainOutcome, serveCalls } from '../../sqlite/worker-rpc.ts'
import { type BlobCommand, openBlobWriter } from './blob-writer.ts'

// The thread that writes what comes without a file to the database of small blobs: it waits for fsync, the event loop does not.

const writer = openBlobWriter(String(workerData))
const methods = {
  commit: async (commands: BlobCommand[]) => (await writer.commit(commands)).map(plainOutcome),
  reclaim: writer.reclaim,
}

export type BlobWorkerMethods = typeof methods

serveCalls(methods, writer.close)
