// @fastify/static with its own defaults. `node fastify-static.ts <folder>`, served at /static/.
import files from '@fastify/static'
import { listen, makeServer } from './server.ts'

const app = makeServer()
app.get('/', () => 'up')
await app.register(files, { root: process.argv[2] ?? '', prefix: '/static/' })
await listen(app)
