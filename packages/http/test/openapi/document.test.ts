import { expect, test } from 'vitest'
import { z } from 'zod'
import { HttpError } from '../../src/index.ts'
import { generateDocument } from '../../src/openapi/document.ts'
import type { DocumentedRoute } from '../../src/openapi/operation.ts'
import { start } from '../support/start.ts'

const about = { title: 'Things', version: '1.2.3', description: 'a test' }

const Problem = z.object({
  properties: z.object({ code: z.object({ enum: z.array(z.string()) }) }),
})
const Document = z.object({
  components: z.object({ schemas: z.looseObject({ Problem }) }),
  paths: z.record(z.string(), z.record(z.string(), z.unknown())),
})

const describe = (...routes: DocumentedRoute[]) => Document.parse(generateDocument(about, routes))

test('the error codes of routes are examples by status', () => {
  const conflict = new HttpError(409, 'edit_conflict', 'The record has changed')

  const { paths } = describe({ method: 'POST', url: '/a', schema: { errors: [conflict] } })

  expect(paths['/a']?.post).toMatchObject({
    responses: {
      409: {
        description: '`edit_conflict`',
        content: {
          'application/problem+json': {
            examples: { edit_conflict: { value: { status: 409, code: 'edit_conflict' } } },
          },
        },
      },
    },
  })
})

test('a document lists the codes that clients can get', async () => {
  await using service = await start()

  const answer = await fetch(`${service.url}/openapi.json`)

  const { components } = Document.parse(await answer.json())
  const codes = components.schemas.Problem.properties.code.enum
  expect(codes).toEqual([...codes].sort())
  expect(codes).toEqual(expect.arrayContaining(['internal_error', 'method_not_allowed', 'validation_failed']))
})

test('HEAD and trailing slashes are left out, and a wildcard gets a name', () => {
  const schema = {}
  const params = z.object({ '*': z.string().meta({ description: 'of the file' }) })

  const { paths } = describe(
    { method: ['GET', 'HEAD'], url: '/files', schema },
    { method: 'GET', url: '/files/', schema },
    { method: 'GET', url: '/files/*', schema: { params } },
    { method: 'GET', url: '/', schema },
  )

  expect(Object.keys(paths)).toEqual(['/files', '/files/{path}', '/'])
  expect(Object.keys(paths['/files'] ?? {})).toEqual(['get'])
  expect(paths['/files/{path}']?.get).toMatchObject({
    parameters: [{ name: 'path', in: 'path', required: true, description: 'of the file' }],
  })
})

test('a schema with an id is a component for each side that uses it', () => {
  const Inner = z.object({ size: z.int().default(1) }).meta({ id: 'Inner' })
  const Outer = z.object({ inner: Inner }).meta({ id: 'Outer', examples: [{ inner: { size: 2 } }] })

  const { components, paths } = describe({
    method: 'PUT',
    url: '/a',
    schema: { body: Outer, responses: { 200: { description: '', body: Inner }, 204: { description: '' } } },
  })

  expect(Object.keys(components.schemas).sort()).toEqual(['Inner', 'InnerInput', 'OuterInput', 'Problem'])
  expect(paths['/a']?.put).toMatchObject({
    requestBody: {
      content: {
        'application/json': {
          schema: { $ref: '#/components/schemas/OuterInput' },
          example: { inner: { size: 2 } },
        },
      },
    },
    responses: {
      200: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Inner' } } } },
      204: { description: '' },
    },
  })
  expect(paths).not.toHaveProperty(['/a', 'put', 'responses', '204', 'content'])
})

test('an integer has only the bounds that its schema names', () => {
  const body = z.object({ any: z.int(), some: z.int().min(1).max(9), none: z.int().nullable() })

  const { paths } = describe({ method: 'POST', url: '/a', schema: { body } })

  expect(JSON.stringify(paths['/a']?.post)).not.toContain(String(Number.MAX_SAFE_INTEGER))
  expect(JSON.stringify(paths['/a']?.post)).toContain('"minimum":1,"maximum":9')
})
