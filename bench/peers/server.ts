import Fastify, { type FastifyReply, type FastifyRequest, LogController } from 'fastify'

/** A Fastify that does nothing but write what our services write of each request: one line, when it has ended. */
export const makeServer = () =>
  Fastify({ logger: { level: 'info' }, logController: new OneLine(), maxParamLength: 1024 })

/** Listens where the bench said. */
export const listen = (app: ReturnType<typeof makeServer>) =>
  app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })

class OneLine extends LogController {
  override incomingRequest() {}

  override requestCompleted(
    error: Error | null | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ) {
    const facts = {
      method: request.method,
      path: request.url,
      status: reply.statusCode,
      ms: reply.elapsedTime,
      client: request.ip,
    }
    if (error) reply.log.warn({ ...facts, err: error }, 'request broken off')
    else reply.log.info(facts, 'request completed')
  }
}
