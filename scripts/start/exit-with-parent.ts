import { isMainThread } from 'node:worker_threads'

// Preloaded into each program that `npm start` spawns, and by Node into its worker threads. Standard input is a pipe from
// the parent: it ends even when the parent is killed, so no program outlives it.
if (isMainThread) {
  process.stdin
    .on('end', () => process.kill(process.pid, 'SIGTERM'))
    .resume()
    .unref()
}
