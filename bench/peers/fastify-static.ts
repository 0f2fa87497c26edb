// @fastify/static with its defaults. `node fastify-static.ts <folder>`, served at /static/.
import files from '@fastify/static'
import { createServer, listen } from './server.ts'

const app = createServer()
app.get('/', () => 'up')
await app.register(files, { root: process.argv[2] ?? '', prefix: '/static/' })
await listen(app)
