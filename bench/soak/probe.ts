import { parentPort, workerData } from 'node:worker_threads'

// Asks for /health on a connection of its own, twice a second, and tells how many milliseconds each answer took. A
// thread of its own, so that what is measured is the service, and not how late the one that loads it is.
setInterval(async () => {
  const since = performance.now()
  const answer = await fetch(`http://127.0.0.1:${workerData}/health`, {
    headers: { connection: 'close' },
  }).catch(() => undefined)
  await answer?.arrayBuffer()
  parentPort?.postMessage(answer?.ok ? performance.now() - since : Number.POSITIVE_INFINITY)
}, 500)
