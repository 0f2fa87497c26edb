import { once } from 'node:events'
import { connect } from 'node:net'
import Fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { HttpError } from '../../src/http-error.ts'
import { checkRequestHeads, parserOptions } from '../../src/requests/request-head.ts'

const headers = 'Host: a\r\nExpect: 100-continue\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\n'

test.each([
  ['/refused', 'before its body is parsed'],
  ['/refused-by-handler', 'by its handler'],
])('a request that its headers refuse gets no 100 Continue, and its connection is closed: %s, %s', async (path) => {
  const { client, received } = await openClient()

  client.write(`POST ${path} HTTP/1.1\r\n${headers}`)
  await once(client, 'close')

  expect(received()).toMatch(/^HTTP\/1\.1 409 .*connection: close/is)
  expect(received().match(/HTTP\/1\.1/g)).toHaveLength(1)
})

test('an accepted request gets 100 Continue before its body is read, and the connection stays open', async () => {
  const { client, received } = await openClient()

  client.write(`POST /echo HTTP/1.1\r\n${headers}`)
  await once(client, 'data')
  expect(received()).toBe('HTTP/1.1 100 Continue\r\n\r\n')
  client.write('abc')
  await once(client, 'data')

  expect(received()).toMatch(/HTTP\/1\.1 200 .*connection: keep-alive.*abc$/is)
})

async function openClient() {
  const app = Fastify({ http: parserOptions })
  onTestFinished(() => app.close())
  checkRequestHeads(app)
  const refuse = async () => {
    throw new HttpError(409, 'path_conflict', 'refused')
  }
  app.post('/refused', { onRequest: refuse }, async () => 'never')
  app.register(async (scope) => {
    // The handler reads the body itself.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
    scope.post('/refused-by-handler', refuse)
  })
  app.post('/echo', async ({ body }) => body)
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  const client = connect(Number(port), '127.0.0.1')
  onTestFinished(() => void client.destroy())
  let text = ''
  client.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk
  })
  return { client, received: () => text }
}
