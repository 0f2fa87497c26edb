// The limit of Fastify: one route, one response that is prepared before the first request. `node bare.ts response.json`
import { readFileSync } from 'node:fs'
import jwt from '@fastify/jwt'
import type { PreparedResponse } from './prepared-response.ts'
import { createServer, listen } from './server.ts'

// Written by the bench from this type.
const prepared = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as PreparedResponse
const { path, status, headers, body, isGuarded } = prepared
const bytes = body && 'base64' in body ? Buffer.from(body.base64, 'base64') : undefined

const app = createServer()
await app.register(jwt, { secret: 'signs the tokens of the limit, and nothing else' })
app.get('/', () => 'up')
app.get('/token', () => app.jwt.sign({ sub: 'bench', role: 'admin' }, { expiresIn: '1h' }))
app.get(path, isGuarded ? { onRequest: (request) => request.jwtVerify() } : {}, (request, reply) => {
  reply.code(status).headers(headers).header('x-request-id', request.id)
  return reply.send(body && 'json' in body ? body.json : bytes)
})
await listen(app)
