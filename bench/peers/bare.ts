// The limit: one route of Fastify, one answer that is known before the first request comes. `node bare.ts answer.json`
import { readFileSync } from 'node:fs'
import jwt from '@fastify/jwt'
import { listen, makeServer } from './server.ts'

/** The answer of the only route. */
export interface BareAnswer {
  path: string
  status: number
  headers: Record<string, string>
  body: { base64: string } | { json: unknown } | undefined
  /** Whether the route asks for a token, of which there is one at `/token`. */
  isGuarded: boolean
}

// The bench wrote it, from this very type.
const answer = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as BareAnswer
const { status, headers, body, isGuarded } = answer
const bytes = body && 'base64' in body ? Buffer.from(body.base64, 'base64') : undefined

const app = makeServer()
await app.register(jwt, { secret: 'signs the tokens of the limit, and nothing else' })
app.get('/', () => 'up')
app.get('/token', () => app.jwt.sign({ sub: 'bench', role: 'admin' }, { expiresIn: '1h' }))
app.get(
  answer.path,
  isGuarded ? { onRequest: (request) => request.jwtVerify() } : {},
  (request, reply) => {
    reply.code(status).headers(headers).header('x-request-id', request.id)
    return reply.send(body && 'json' in body ? body.json : bytes)
  },
)
await listen(app)
