import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyRequest,
  LogController,
} from 'fastify'
import { Params } from '../protocol/parameters.ts'
import type { CallHandler } from './call-handler.ts'
import { FaultList, type FaultQueue } from './faults.ts'
import { send } from './transport.ts'

const maxFormBytes = 8 * 1024 * 1024

interface Dependencies {
  handler: CallHandler
  faults: FaultQueue
  log: FastifyBaseLogger | undefined
}

/** The HTTP server: the API, and beside it the endpoints for tests and people. Does not listen yet. */
export function buildServer({ handler, faults, log }: Dependencies): FastifyInstance {
  const app = Fastify({
    ...(log ? { loggerInstance: log } : {}),
    // URLs are not logged: a GET carries the API key.
    logController: new LogController({ disableRequestLogging: true }),
    forceCloseConnections: true,
    bodyLimit: maxFormBytes,
  })

  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    async (_request: FastifyRequest, body: string) => new URLSearchParams(body),
  )
  app.setNotFoundHandler((_request, reply) => reply.code(404).send({ error: 'not found' }))
  app.addHook('preClose', async () => handler.stop())

  serveApi(app, handler)
  serveCalls(app, handler)
  serveFaults(app, handler, faults)
  return app
}

// The registrar's API. The reply is hijacked: faults bypass the framework.
function serveApi(app: FastifyInstance, handler: CallHandler): void {
  app.route({
    method: ['GET', 'POST'],
    url: '/xml.response',
    handler: async (request, reply) => {
      const form = request.body instanceof URLSearchParams ? request.body : []
      const params = new Params(new URL(request.url, 'http://sandbox').searchParams, form)
      reply.hijack()
      try {
        const call = await handler.handle(request.method, params, reply.raw)
        const { command, domain, outcome, fault } = call
        request.log.info({ command, domain, outcome, fault }, 'call answered')
      } catch (error) {
        if (!handler.isStopping) request.log.error({ err: error }, 'call failed')
        if (handler.isStopping || reply.raw.headersSent) reply.raw.destroy()
        else send(reply.raw, 500, 'text/plain; charset=utf-8', 'Sandbox failed')
      }
    },
  })
}

function serveCalls(app: FastifyInstance, handler: CallHandler): void {
  app.get('/health', async () => ({ status: 'ok', calls: handler.calls.length }))

  app.get('/_calls', async () => ({ calls: handler.calls }))
  app.delete('/_calls', async (_request, reply) => {
    handler.calls.length = 0
    return reply.code(204).send()
  })

  app.post('/_late', async (_request, reply) => {
    await handler.runLate()
    return reply.code(204).send()
  })
}

function serveFaults(app: FastifyInstance, handler: CallHandler, faults: FaultQueue): void {
  app.get('/_faults', async () => ({ faults: faults.pending }))
  app.post('/_faults', async (request, reply) => {
    const list = FaultList.safeParse(request.body)
    if (!list.success) return reply.code(400).send({ error: list.error.issues })
    faults.add(list.data.faults)
    return reply.code(201).send({ faults: faults.pending })
  })
  app.delete('/_faults', async (_request, reply) => {
    handler.clearFaults()
    return reply.code(204).send()
  })
}
