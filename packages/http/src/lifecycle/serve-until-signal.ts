import type { FastifyInstance } from 'fastify'

/**
 * Listens until SIGTERM or SIGINT. Then stops accepting, finishes running requests (10 s at most), closes the stores by
 * the app's onClose hooks, and exits 0. A second signal exits at once.
 */
export async function serveUntilSignal(
  app: FastifyInstance,
  address: { host: string; port: number },
) {
  let stopping = false
  const stop = (signal: NodeJS.Signals) => {
    if (stopping) process.exit(1)
    stopping = true
    app.log.info({ signal }, 'stopping')
    const closeConnections = setTimeout(() => app.server.closeAllConnections(), 9_000)
    setTimeout(() => {
      app.log.warn('stopped before all requests finished')
      process.exit(0)
    }, 10_000).unref()
    app.close().then(
      () => {
        clearTimeout(closeConnections)
        app.log.info('stopped')
        process.exit(0)
      },
      (error) => {
        app.log.error({ err: error }, 'graceful shutdown failed')
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  // libuv accepts one connection per event-loop iteration, so a burst needs a long backlog.
  await app.listen({ ...address, backlog: 4096 })
}
