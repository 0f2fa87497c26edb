import type { FastifyInstance } from 'fastify'

/**
 * Answers the CORS preflights of paths that a page of any origin may read, whatever `CORS_ORIGIN` names for the others.
 * Call it before other hooks; an OPTIONS that is no preflight is left to them.
 */
export function answerPublicPreflights(app: FastifyInstance, prefix: string): void {
  app.addHook('onRequest', ({ method, url, headers }, reply, done) => {
    const isPreflight =
      method === 'OPTIONS' &&
      headers.origin !== undefined &&
      headers['access-control-request-method'] !== undefined
    if (!isPreflight || !url.startsWith(prefix)) return done()
    reply.code(204).headers(preflightHeaders).send()
  })
}

const preflightHeaders = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, HEAD',
  // The wildcard does not cover Authorization, which some clients send everywhere.
  'access-control-allow-headers': '*, authorization',
  'access-control-max-age': '86400',
  'content-length': '0',
}
