import Fastify, { type FastifyReply, type FastifyRequest, LogController } from 'fastify'

/** Fastify with the access log of our services, one line per request; without any log if ACCESS_LOG is off. */
export const createServer = () =>
  Fastify({
    logger: process.env.ACCESS_LOG === 'off' ? false : { level: 'info' },
    logController: new OneLine(),
    routerOptions: { maxParamLength: 1024 },
  })

/** Listens on PORT. */
export const listen = (app: ReturnType<typeof createServer>) =>
  app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })

class OneLine extends LogController {
  override incomingRequest() {}

  override requestCompleted(error: Error | null | undefined, request: FastifyRequest, reply: FastifyReply) {
    const fields = {
      method: request.method,
      path: request.url,
      status: reply.statusCode,
      ms: reply.elapsedTime,
      client: request.ip,
    }
    if (error) reply.log.warn({ ...fields, err: error }, 'request aborted')
    else reply.log.info(fields, 'request completed')
  }
}
