import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyRequest,
  LogController,
} from 'fastify'
import { Params } from '../commands/parameters.ts'
import type { CallHandler } from './call-handler.ts'
import { FaultList, type FaultQueue } from './faults.ts'
import { send } from './transport.ts'

const longestForm = 8 * 1024 * 1024

interface Parts {
  exchange: CallHandler
  faults: FaultQueue
  log: FastifyBaseLogger | undefined
}

/** Makes the HTTP side: the API itself, and beside it what tests and people need. Does not listen yet. */
export function buildServer({ exchange, faults, log }: Parts): FastifyInstance {
  const app = Fastify({
    ...(log ? { loggerInstance: log } : {}),
    // A call may carry the API key in its address, so addresses are not logged.
    logController: new LogController({ disableRequestLogging: true }),
    forceCloseConnections: true,
    bodyLimit: longestForm,
  })

  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    async (_request: FastifyRequest, body: string) => new URLSearchParams(body),
  )
  app.setNotFoundHandler((_request, reply) => reply.code(404).send({ error: 'not found' }))
  app.addHook('preClose', async () => exchange.stop())

  app.route({
    method: ['GET', 'POST'],
    url: '/xml.response',
    handler: async (request, reply) => {
      const form = request.body instanceof URLSearchParams ? request.body : []
      const params = new Params(new URL(request.url, 'http://sandbox').searchParams, form)
      reply.hijack()
      try {
        const call = await exchange.take(request.method, params, reply.raw)
        const { command, domain, outcome, fault } = call
        request.log.info({ command, domain, outcome, fault }, 'call answered')
      } catch (error) {
        if (!exchange.isStopping) request.log.error({ err: error }, 'call not answered')
        if (exchange.isStopping || reply.raw.headersSent) reply.raw.destroy()
        else send(reply.raw, 500, 'text/plain; charset=utf-8', 'The sandbox itself has failed')
      }
    },
  })

  app.get('/health', async () => ({ status: 'ok', calls: exchange.calls.length }))

  app.get('/_calls', async () => ({ calls: exchange.calls }))
  app.delete('/_calls', async (_request, reply) => {
    exchange.calls.length = 0
    return reply.code(204).send()
  })

  app.get('/_faults', async () => ({ faults: faults.left }))
  app.post('/_faults', async (request, reply) => {
    const list = FaultList.safeParse(request.body)
    if (!list.success) return reply.code(400).send({ error: list.error.issues })
    faults.add(list.data.faults)
    return reply.code(201).send({ faults: faults.left })
  })
  app.delete('/_faults', async (_request, reply) => {
    faults.clear()
    return reply.code(204).send()
  })
  return app
}
