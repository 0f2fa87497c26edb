import { DatabaseUnavailableError, OutcomeUnknownError } from '@domains-and-files/persistence'
import multipart from '@fastify/multipart'
import fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import type { BlobStore } from '../../src/blobs/blob-store.ts'
import { readForm } from '../../src/routes/files/multipart-form.ts'
import { boundary, writeForm } from '../support/start.ts'

const store = {} as BlobStore // Not used: the file is refused before its first byte.

/** What `readForm` throws where `admit` fails so. */
async function failureOf(error: unknown): Promise<unknown> {
  const app = fastify()
  onTestFinished(() => app.close())
  await app.register(multipart)
  const admit = () => Promise.reject(error)
  const rules = { field: 'file', maxFiles: 1, pathOf: (name: string) => name, admit }
  app.post('/', async (request) => readForm(request, store, rules))
  let thrown: unknown
  app.setErrorHandler((failure, _request, reply) => {
    thrown = failure
    return reply.code(500).send()
  })
  await app.inject({
    method: 'POST',
    url: '/',
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
    payload: writeForm([{ name: 'file', content: 'x', filename: 'a.txt' }]),
  })
  return thrown
}

test.each([
  new DatabaseUnavailableError(new Error('away')),
  new OutcomeUnknownError(new Error('cut')),
])('a failure of the database is not taken for a malformed form: %s', async (error) => {
  expect(await failureOf(error)).toBe(error)
})

test('a failure of the parser is a malformed form', async () => {
  expect(await failureOf(new Error('Unexpected end of form'))).toMatchObject({
    status: 400,
    code: 'malformed_body',
  })
})
