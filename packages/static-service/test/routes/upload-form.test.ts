import { DatabaseUnavailableError, OutcomeUnknownError } from '@domains-and-files/persistence'
import multipart from '@fastify/multipart'
import fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import type { FileDependencies } from '../../src/routes/files/store-files.ts'
import { storeForm } from '../../src/routes/files/uploads.ts'
import { boundary, writeForm } from '../support/start.ts'

/** What `storeForm` throws where the store fails so. */
async function failureOf(error: unknown): Promise<unknown> {
  const app = fastify()
  onTestFinished(() => app.close())
  await app.register(multipart)
  const rules = { field: 'file', maxFiles: 1, pathOf: (name: string) => name }
  const draft = () => {
    throw error
  }
  const limits = { checkSize: () => undefined }
  const dependencies = { store: { draft }, limits } as unknown as FileDependencies // Nothing else is reached.
  app.post('/', async (request) => storeForm(request, rules, dependencies))
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

test.each([new DatabaseUnavailableError(new Error('away')), new OutcomeUnknownError(new Error('cut'))])(
  'a failure of the database is not taken for a malformed form: %s',
  async (error) => {
    expect(await failureOf(error)).toBe(error)
  },
)

test('a failure of the parser is a malformed form', async () => {
  expect(await failureOf(new Error('Unexpected end of form'))).toMatchObject({
    status: 400,
    code: 'malformed_body',
  })
})
