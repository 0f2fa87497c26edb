import { expect, test } from 'vitest'
import { z } from 'zod'
import { HttpError } from '../../src/index.ts'
import { completeDocument } from '../../src/openapi/document.ts'
import { start } from '../support/start.ts'

const Problem = z.object({
  properties: z.object({ code: z.object({ enum: z.array(z.string()) }) }),
})
const Document = z.object({
  components: z.object({ schemas: z.looseObject({ Problem }) }),
})

test('the error codes of routes are examples by status', () => {
  const conflict = new HttpError(409, 'edit_conflict', 'The record has changed')
  const operation = { 'x-documentation': { errors: [conflict] }, responses: {} }

  completeDocument({ paths: { '/a': { post: operation } } })

  expect(operation.responses).toMatchObject({
    409: {
      description: '`edit_conflict`',
      content: {
        'application/problem+json': {
          examples: { edit_conflict: { value: { status: 409, code: 'edit_conflict' } } },
        },
      },
    },
  })
  expect(operation).not.toHaveProperty('x-documentation')
})

test('a document lists the codes that clients can get', async () => {
  await using service = await start()

  const answer = await fetch(`${service.url}/openapi.json`)

  const { components } = Document.parse(await answer.json())
  const codes = components.schemas.Problem.properties.code.enum
  expect(codes).toEqual([...codes].sort())
  expect(codes).toEqual(
    expect.arrayContaining(['internal_error', 'method_not_allowed', 'validation_failed']),
  )
})

test('HEAD and trailing slashes are left out, and a wildcard gets a name', () => {
  const get = { parameters: [{ name: '*', in: 'path' }] }
  const document = completeDocument({
    paths: { '/files': { get: {}, head: {} }, '/files/': { get: {} }, '/files/{*}': { get } },
  })

  expect(Object.keys(document.paths)).toEqual(['/files', '/files/{path}'])
  expect(document.paths['/files']).not.toHaveProperty('head')
  expect(get.parameters[0]?.name).toBe('path')
})

test('schemas that nothing refers to are removed, also when only removed ones did', () => {
  const document = completeDocument({
    components: {
      schemas: {
        Used: {},
        Unused: { properties: { inner: { $ref: '#/components/schemas/Inner' } } },
        Inner: {},
      },
    },
    paths: {
      '/a': {
        get: {
          responses: {
            200: {
              content: { 'application/json': { schema: { $ref: '#/components/schemas/Used' } } },
            },
          },
        },
      },
    },
  })

  expect(Object.keys(document.components.schemas)).toEqual(['Used'])
})
