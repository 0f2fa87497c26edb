import Fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyRequest, LogController } from 'fastify'
import { Account } from '../account/account.ts'
import { Params } from '../protocol/parameters.ts'
import { FaultList } from './faults.ts'
import { Registrar, type RegistrarOptions } from './registrar.ts'

const maxFormBytes = 8 * 1024 * 1024

export interface SandboxOptions extends RegistrarOptions {
  host?: string
  /** 0: any free port. */
  port?: number
  log?: FastifyBaseLogger
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>

/** Serves the registrar's API at `url`, which ends in `/xml.response`. */
export async function startSandbox(options: SandboxOptions) {
  const { host = '127.0.0.1', port = 0, log } = options
  const account = await Account.open({ now: Date.now, ...options, owner: options.apiUser })
  const registrar = new Registrar(options, account)
  const app = buildServer(registrar, log)
  const url = `${await app.listen({ host, port })}/xml.response`
  const close = (): Promise<void> => app.close()
  return Object.assign(registrar, { url, close, [Symbol.asyncDispose]: close })
}

/** The registrar's API, and endpoints for tests and developers. */
function buildServer(registrar: Registrar, log: FastifyBaseLogger | undefined): FastifyInstance {
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
  app.addHook('preClose', async () => registrar.stop())
  serveApi(app, registrar)
  serveTests(app, registrar)
  return app
}

// The registrar's API. The reply is hijacked: faults bypass the framework.
function serveApi(app: FastifyInstance, registrar: Registrar): void {
  app.route({
    method: ['GET', 'POST'],
    url: '/xml.response',
    handler: async (request, reply) => {
      const form = request.body instanceof URLSearchParams ? request.body : []
      const params = new Params(new URL(request.url, 'http://sandbox').searchParams, form)
      reply.hijack()
      try {
        const call = await registrar.handle(request.method, params, reply.raw)
        const { command, domain, outcome, fault } = call
        request.log.info({ command, domain, outcome, fault }, 'call answered')
      } catch (error) {
        if (!registrar.isStopping) request.log.error({ err: error }, 'call failed')
        reply.raw.destroy()
      }
    },
  })
}

function serveTests(app: FastifyInstance, registrar: Registrar): void {
  app.get('/health', async () => ({ status: 'ok', calls: registrar.calls.length }))
  app.get('/_calls', async () => ({ calls: registrar.calls }))
  app.get('/_faults', async () => ({ faults: registrar.faults }))
  app.post('/_faults', async (request, reply) => {
    const list = FaultList.safeParse(request.body)
    if (!list.success) return reply.code(400).send({ error: list.error.issues })
    registrar.fault(...list.data.faults)
    return reply.code(201).send({ faults: registrar.faults })
  })
  const serve = (method: 'POST' | 'DELETE', url: string, work: () => void | Promise<void>) =>
    app.route({
      method,
      url,
      handler: async (_request, reply) => {
        await work()
        return reply.code(204).send()
      },
    })
  serve('DELETE', '/_calls', () => registrar.clearCalls())
  serve('DELETE', '/_faults', () => registrar.clearFaults())
  serve('POST', '/_late', () => registrar.runLate())
}
