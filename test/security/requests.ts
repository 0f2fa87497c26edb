import fc from 'fast-check'
import type { Operation, Schema } from './description.ts'
import { hostile, records, telling } from './values.ts'

/** A request generated from an OpenAPI document. */
export interface Made {
  operation: Operation
  method: string
  target: string
  user: 'admin' | 'editor' | 'viewer' | 'nobody' | 'forged'
  headers: Record<string, string>
  body: Buffer | undefined
}

const junk: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(...hostile),
  fc.string({ unit: 'binary', maxLength: 50 }),
  fc.constantFrom(null, true, -1, 0, 1.5, 1e308, -(2 ** 53), [], {}, [[[[]]]], { a: { b: {} } }),
  fc.anything({ maxDepth: 3, withNullPrototype: false }).map(asJson),
)

/** A mostly valid request, so that it passes the first checks. */
export function requestTo(operation: Operation, root: object): fc.Arbitrary<Made> {
  const { parameters, requestBody } = operation
  const ofPlace = (place: 'path' | 'query') =>
    fc.record(
      Object.fromEntries(
        parameters.filter((each) => each.in === place).map(({ name, schema }) => [name, textOf(name, schema, root)]),
      ),
      place === 'path' ? {} : { requiredKeys: [] },
    )
  const [type, content] = Object.entries(requestBody?.content ?? {})[0] ?? []
  const body =
    content && type === 'application/json'
      ? jsonBody(content.schema, root)
      : type
        ? formBody(operation.path.endsWith('batch') ? 'files' : 'file')
        : fc.constant({ headers: {}, body: undefined })
  return fc
    .record({
      path: ofPlace('path'),
      query: ofPlace('query'),
      strays: often({}, fc.dictionary(word, word, { maxKeys: 2 })),
      conditions: often({}, conditions),
      user: fc.oneof(
        { weight: 8, arbitrary: fc.constant('admin' as const) },
        { weight: 2, arbitrary: fc.constantFrom('editor', 'viewer', 'nobody', 'forged') },
      ),
      isHead: often(false, fc.constant(true)),
      body,
    })
    .map(({ path, query, strays, conditions, user, isHead, body }) => ({
      operation,
      method: operation.method === 'get' && isHead ? 'HEAD' : operation.method.toUpperCase(),
      target: targetOf(operation.path, path, { ...query, ...strays }),
      user,
      headers: { ...conditions, ...body.headers },
      body: body.body,
    }))
}

const often = <T>(usual: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 7, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other })

const word = fc.oneof(fc.constantFrom(...hostile), fc.string({ maxLength: 10 }))

const conditions = fc.dictionary(
  fc.constantFrom('if-match', 'if-none-match', 'range', 'cache-control', 'accept-encoding', 'x-forwarded-host'),
  fc.constantFrom('*', '"x"', 'W/"x"', 'bytes=0-1', 'bytes=1-0,-1', 'no-cache', 'br;q=0, *', 'evil.example', ','),
)

/** A value that matches a schema, sometimes one that does not. */
function someValue(name: string, schema: Schema, root: object): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 10, arbitrary: fitting(name, schema, root) }, { weight: 1, arbitrary: junk })
}

function fitting(name: string, schema: Schema, root: object): fc.Arbitrary<unknown> {
  if (schema.$ref) return fitting(name, find(root, schema.$ref), root)
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map((each) => fitting(name, each, root)))
  const known = telling[name]
  const own = byType(schema, root)
  return known ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...known) }, own) : own
}

function byType(schema: Schema, root: object): fc.Arbitrary<unknown> {
  const { minLength = 0, maxLength = 60, minimum = -1000, maximum = 1000 } = schema
  switch ([schema.type].flat()[0]) {
    case 'integer':
      return fc.integer({ min: minimum, max: Math.min(maximum, 1_000_000_000) })
    case 'boolean':
      return fc.boolean()
    case 'array':
      return fc.array(someValue('', schema.items ?? {}, root), { maxLength: 5 })
    case 'object':
      return objectOf(schema, root)
    default:
      if (schema.format === 'date-time') return instant
      return schema.pattern
        ? fc.stringMatching(new RegExp(schema.pattern))
        : fc.string({ unit: 'grapheme', minLength, maxLength: Math.min(maxLength, 60) })
  }
}

const instant = fc.date({ noInvalidDate: true }).map((date) => date.toISOString())

function objectOf({ properties = {}, required = [] }: Schema, root: object) {
  const fields = Object.entries(properties).map(([name, schema]) => [name, someValue(name, schema, root)] as const)
  const whole = fc.record(Object.fromEntries(fields), { requiredKeys: required })
  const right = records.map(({ type, ...record }) => ('type' in properties ? { type, ...record } : record))
  return fc.oneof(
    ...('address' in properties ? [{ weight: 8, arbitrary: fc.constantFrom<object>(...right) }] : []),
    { weight: 8, arbitrary: whole },
    { weight: 1, arbitrary: fc.record(Object.fromEntries(fields), { requiredKeys: [] }) },
    {
      weight: 1,
      arbitrary: fc.tuple(whole, word, junk).map(([all, key, value]) => ({ ...all, [key]: value })),
    },
  )
}

const textOf = (name: string, schema: Schema, root: object) =>
  fc.oneof(
    { weight: 8, arbitrary: fitting(name, schema, root).map(asText) },
    { weight: 1, arbitrary: fc.constantFrom(...hostile) },
  )

// Objects may have a field `toString` that is no function.
const asText = (value: unknown): string =>
  [value]
    .flat()
    .map((each) => (typeof each === 'object' ? JSON.stringify(each) : String(each)))
    .join(',')

const jsonBody = (schema: Schema, root: object) =>
  fc
    .record({
      value: someValue('', schema, root),
      type: often('application/json', fc.constantFrom('text/plain', 'application/json; charset=utf-16', '')),
      spoil: often(undefined, fc.constantFrom('{"__proto__":{}}', '{"a":1,"a":2}', '[', '\ufeff{}', '', 'NaN')),
    })
    .map(({ value, type, spoil }) => ({
      headers: { 'content-type': type },
      body: Buffer.from(spoil ?? JSON.stringify(value) ?? ''),
    }))

const part = (field: string) =>
  fc.record({
    name: fc.oneof({ weight: 4, arbitrary: fc.constantFrom(field, field, 'path') }, fc.constantFrom(...hostile)),
    filename: fc.option(fc.oneof(fc.constantFrom('x', 'x.html', 'dir/x.svg'), fc.constantFrom(...hostile))),
    content: fc.oneof(fc.constantFrom('dir/', 'dir/new.txt', '--b', '\r\n--b\r\n'), word),
  })

const formBody = (field: string) =>
  fc
    .record({
      parts: fc.array(part(field), { minLength: 1, maxLength: 4 }),
      end: often('--b--\r\n', fc.constantFrom('', '--b', '--b-', '--B--\r\n', '--b--\r\n--b\r\n')),
      type: often(
        'multipart/form-data; boundary=b',
        fc.constantFrom(
          'multipart/form-data',
          'multipart/mixed; boundary=b',
          'multipart/form-data; boundary="',
          'multipart/form-data; boundary=b; boundary=c',
          'multipart/form-data; boundary=',
        ),
      ),
    })
    .map(({ parts, end, type }) => ({
      headers: { 'content-type': type },
      body: Buffer.from(
        parts
          .map(({ name, filename, content }) => {
            const file = filename === null ? '' : `; filename="${filename}"`
            return `--b\r\ncontent-disposition: form-data; name="${name}"${file}\r\n\r\n${content}\r\n`
          })
          .join('') + end,
      ),
    }))

function targetOf(path: string, names: Record<string, string | undefined>, query: Record<string, string | undefined>) {
  const called = path.replaceAll(/\{(\w+)\}/g, (_all, name) => encode(names[name] || 'x'))
  const pairs = Object.entries(query).map(([name, value]) => `${encode(name)}=${encode(value ?? '')}`)
  return pairs.length > 0 ? `${called}?${pairs.join('&')}` : called
}

const encode = (text: string) => encodeURIComponent(text.toWellFormed()).replaceAll('%2F', '/')

function asJson(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value) ?? 'null')
  } catch {
    return null
  }
}

function find(root: object, reference: string): Schema {
  const names = reference.replace('#/', '').split('/')
  return names.reduce<Record<string, Schema>>(
    (value, name) => (value[name] ?? {}) as Record<string, Schema>, // A description is made of such records.
    root as Record<string, Schema>,
  ) as Schema
}
