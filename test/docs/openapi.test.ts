import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Answered, type Watch, watchAnswers } from '../e2e/generated-client/watch.ts'
import { type Everything, metricsToken, root, startEverything } from '../support/everything.ts'
import { generateTypes, typesFile } from '../support/generate-client.ts'

const services = ['domain-service', 'static-service'] as const
type Name = (typeof services)[number]

let everything: Everything
beforeAll(async () => {
  everything = await startEverything()
})
afterAll(async () => {
  await everything[Symbol.asyncDispose]()
})

const urlOf = (name: Name) => (name === 'domain-service' ? everything.domains : everything.files)

// The linter blocks this process: the service may close a connection meanwhile that a later request would use.
const headers = { connection: 'close' }

async function describe(name: Name) {
  const answer = await fetch(`${urlOf(name)}/openapi.json`, { headers })
  return { text: await answer.text() }
}

test.each(services)('the OpenAPI document of the %s passes the linter', async (name) => {
  const { text } = await describe(name)

  const faults = await lint(text)

  expect(faults).toEqual([])
})

test.each(services)('each operation of the %s is documented completely', async (name) => {
  const { text } = await describe(name)

  const untold = operationsOf(text).flatMap(({ id, operation }) => {
    const media = [operation.requestBody, ...Object.values(operation.responses)].flatMap((each) =>
      Object.entries(each?.content ?? {}),
    )
    const bare = media.filter(([type, body]) => type !== '*/*' && !body.example && !body.examples)
    const dumb = Object.entries(operation.responses).filter(([, each]) => !each.description)
    const isTold = Boolean(operation.summary && operation.description && operation.operationId)
    const isTagged = operation.tags?.length === 1
    return bare.length + dumb.length === 0 && isTold && isTagged ? [] : [id]
  })

  expect(untold).toEqual([])
})

test.each(services)('the %s says who runs it, and its patterns run in other languages', async (name) => {
  const { text } = await describe(name)

  const patterns = [...text.matchAll(/"pattern":"((?:[^"\\\\]|\\\\.)*)"/g)].map(([, each]) => each)

  expect(JSON.parse(text)).toMatchObject({ info: { contact: { name: expect.any(String) } } })
  expect(patterns.length).toBeGreaterThan(0)
  // Lookaround is unknown to RE2 and Rust; Unicode properties need a flag that JSON Schema cannot carry.
  expect(patterns.filter((each) => /\(\?<?[=!]|\\p/.test(each ?? ''))).toEqual([])
})

test.each(services)('every named error of the %s is documented', async (name) => {
  const { text } = await describe(name)
  const source = readFileSync(join(root, 'packages', name, 'src/errors.ts'), 'utf8')

  const named = [...source.matchAll(/[45]\d\d,\s*'([a-z_]+)'/g)].map(([, code]) => code)

  expect(named.length).toBeGreaterThan(10)
  for (const code of named) expect(text).toContain(`"code":"${code}"`)
})

test.each(services)('the types of packages/client are those of the %s', async (name) => {
  const types = await generateTypes(urlOf(name))

  expect(types === readFileSync(typesFile(name), 'utf8'), 'run `npm run client:generate`').toBe(true)
})

test.each(services)('every operation of the %s responds as documented', async (name) => {
  // Untyped import: the file needs types that test/e2e/generated-clients.test.ts generates.
  const { runScenario }: Scenario = await import(`../e2e/generated-client/${name}.ts`)
  const { watch, answers } = watchAnswers()

  await runScenario(urlOf(name), everything.password, watch)

  answers.push(await readMetrics(name))
  await expectDocumented(name, answers)
})

interface Scenario {
  runScenario: (baseUrl: string, password: string, watch: Watch) => Promise<void>
}

// /metrics is for Prometheus and has its own token.
async function readMetrics(name: Name): Promise<Answered> {
  const answer = await fetch(`${urlOf(name)}/metrics`, {
    headers: { ...headers, authorization: `Bearer ${metricsToken}` },
  })
  const { status } = answer
  const type = answer.headers.get('content-type')
  return { method: 'get', path: '/metrics', status, type, text: await answer.text() }
}

// Replaces the examples by actual responses and lints again: the linter validates examples against their schemas.
async function expectDocumented(name: Name, answers: Answered[]) {
  const { text } = await describe(name)
  const description = JSON.parse(text)
  const unanswered = new Set(operationsOf(text).map(({ id }) => id))
  const fields = new Map<string, Set<string>>() // Response fields by example.
  const shown = new Map<Media, unknown>()
  for (const answer of answers) {
    const { method, path, status, type, text: body } = answer
    const operation: Operation = description.paths[path][method]
    const response = operation.responses[status]
    expect(response, `${method} ${path} answers ${status}`).toBeDefined()
    // Single sign-on and workloads need a provider, with which packages/auth tests them.
    const isOff = path.startsWith('/api/auth/oidc/') && status === 404
    const isRefused = path === '/api/auth/token' && status === 400
    if (status < 300 || isOff || isRefused) unanswered.delete(`${method} ${path}`)
    if (!type?.includes('json')) continue
    const media = response?.content?.[type.replace(/;.*/, '')]
    expect(media, `${method} ${path} answers ${status} with ${type}`).toBeDefined()
    if (!media) continue
    const given = JSON.parse(body)
    if (media.example) shown.set(media, media.example)
    const example = shown.get(media)
    if (example) {
      const known = JSON.stringify(example)
      fields.set(known, new Set([...(fields.get(known) ?? []), ...keysOf(given)]))
    }
    media.examples = { ...media.examples, [`answered${answers.indexOf(answer)}`]: { value: given } }
    delete media.example
  }
  for (const [example, answered] of fields) {
    expect([...answered]).toEqual(expect.arrayContaining(keysOf(JSON.parse(example))))
  }
  expect([...unanswered]).toEqual([])
  expect(await lint(JSON.stringify(description))).toEqual([])
}

// Every field name with its position; one element represents its list.
function keysOf(value: unknown, at = ''): string[] {
  if (Array.isArray(value)) return [...new Set(value.flatMap((each) => keysOf(each, `${at}[]`)))]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, each]) => [`${at}.${key}`, ...keysOf(each, `${at}.${key}`)])
}

interface Operation {
  operationId?: string
  summary?: string
  description?: string
  tags?: string[]
  requestBody?: { content?: Record<string, Media> }
  responses: Record<string, { description?: string; content?: Record<string, Media> }>
}

interface Media {
  example?: unknown
  examples?: Record<string, unknown>
}

function operationsOf(text: string) {
  const { paths }: { paths: Record<string, Record<string, Operation>> } = JSON.parse(text)
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      id: `${method} ${path}`,
      operation,
    })),
  )
}

async function lint(text: string): Promise<string[]> {
  const config = await createConfig({
    extends: ['recommended-strict'],
    rules: {
      'no-invalid-schema-examples': 'error',
      'no-invalid-media-type-examples': { severity: 'error', allowAdditionalProperties: false },
      'tag-description': 'error',
    },
  })
  const source = { source: text, absoluteRef: 'openapi.json', config }
  const faults = await lintFromString(source)
  return faults.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer} ${message}`)
}
