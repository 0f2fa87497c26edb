import type { FastifyInstance } from 'fastify'

/**
 * Listens, and stops in order on SIGTERM or SIGINT: no new connections, what is running ends (10 s at most), then the
 * app's onClose hooks close the stores, exit 0. A second signal exits at once.
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
    const limit = setTimeout(() => app.server.closeAllConnections(), 9_000)
    // What still does not end then has nobody left to answer.
    setTimeout(() => {
      app.log.warn('stopped before all had ended')
      process.exit(0)
    }, 10_000).unref()
    app.close().then(
      () => {
        clearTimeout(limit)
        app.log.info('stopped')
        process.exit(0)
      },
      (error) => {
        app.log.error({ err: error }, 'could not stop in order')
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  // One connection is accepted in each turn of the event loop: a crowd must find room to wait.
  await app.listen({ ...address, backlog: 4096 })
}
