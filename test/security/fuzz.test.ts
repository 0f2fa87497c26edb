import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { faults } from '../fault-injection/faults.ts'
import { tableRows } from '../support/tables.ts'
import { type Answer, readDescription } from './description.ts'
import { leaksIn } from './leaks.ts'
import { type Made, requestTo } from './requests.ts'
import { type Name, startTarget, type Target } from './start.ts'
import { liveRecord } from './values.ts'

// FUZZ_CASES requests to each service, generated from its OpenAPI document, and more until most operations have succeeded.
const cases = (usual: number) => Number(process.env.FUZZ_CASES ?? usual)
const agent = new Agent({ keepAlive: true, maxSockets: 1 })
afterAll(() => agent.destroy())

const errors = readFileSync(join(import.meta.dirname, '../../docs/errors.md'), 'utf8')
const codes = new Set(tableRows(errors).flatMap(([cell = '']) => cell.replaceAll('`', '').split(', ')))

const Problem = z.object({ status: z.number(), code: z.string(), request_id: z.string() })

/** Faults of a response that no request excuses. */
function findFaults(made: Made, answer: Answer, validate: Validate): string[] {
  const { status, headers } = answer
  const needed = {
    201: [],
    401: ['www-authenticate'],
    405: ['allow'],
    429: ['retry-after'],
    503: ['retry-after'],
  }[status]
  const missing = (needed ?? []).filter((name) => headers[name] === undefined)
  const faults = [...missing.map((name) => `${status} without ${name}`), ...leaksIn(JSON.stringify(answer))]
  if (headers['x-request-id'] !== 'fuzz') faults.push('x-request-id is missing')
  if (made.method === 'HEAD') return answer.text === '' ? faults : [...faults, 'a HEAD has a body']
  if (status < 400) return [...faults, ...validate(made.operation, answer)]
  const problem = Problem.safeParse(JSON.parse(answer.text)).data
  if (problem?.status !== status || problem.request_id !== 'fuzz') faults.push('not a problem of this request')
  if (!codes.has(problem?.code ?? '')) faults.push(`the code ${problem?.code} is undocumented`)
  return [...faults, ...validate(made.operation, answer)]
}

type Validate = Awaited<ReturnType<typeof readDescription>>['validate']

async function send(target: Target, made: Made, token: string): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const asked = request({
    agent,
    port: target.port,
    method: made.method,
    path: made.target,
    headers: {
      ...made.headers,
      'x-request-id': 'fuzz',
      ...(made.user === 'nobody' ? {} : { authorization: `Bearer ${token}` }),
      ...(made.body ? { 'content-length': made.body.length } : {}),
    },
  })
  asked.on('error', reject)
  asked.on('response', async (answer) =>
    resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: await text(answer) }),
  )
  asked.end(made.body)
  return promise
}

// Registrar failures; logged if the state of a zone is uncertain.
const failures = [502, 503, 504]
const doubts = /^(?:write not confirmed|late write overwrote newer changes|registrar refused the credentials)/

interface Setting {
  name: Name
  env?: Record<string, string>
  /** Whether the registrar fails during every other request. */
  failing?: boolean
}

const settings: [string, Setting][] = [
  ['the domain-service', { name: 'domain-service' }],
  ['the static-service', { name: 'static-service' }],
  [
    'the domain-service before a registrar that fails at random',
    {
      name: 'domain-service',
      env: { REGISTRAR_TIMEOUT_MS: '150', CACHE_TTL_MS: '1' },
      failing: true,
    },
  ],
]

describe.each(settings)('generated requests to %s', (_title, { name, env, failing = false }) => {
  test('every response is documented, and none is a 500', async () => {
    await using target = await startTarget(name, env)
    const { operations, validate, document } = await readDescription(target.port)
    const tokens: Partial<Record<Made['user'], string>> = {
      admin: await target.tokenOf('admin'),
      editor: await target.tokenOf('editor'),
      viewer: await target.tokenOf('viewer'),
    }
    const tokenFor = ({ operation, user }: Made) => {
      if (operation.path === '/metrics' && user === 'admin') return 'metrics-token-of-tests'
      // The other requests need the tokens, which this operation would end.
      if (operation.operationId === 'logOut') return 'x.y.z'
      return tokens[user] ?? 'x.y.z'
    }
    const requests = operations.map((operation) => requestTo(operation, document))
    const fault = fc.tuple(faults, fc.constantFrom(1, 2, 4)).map(([each, times]) => ({ ...each, times }))
    const strike = failing ? fc.oneof(fc.constant(null), fault) : fc.constant(null)
    let live = 'none-yet'
    const met = new Map<string, number>()
    let faultsMet = 0

    const property = fc.asyncProperty(fc.oneof(...requests), strike, async (made, fault) => {
      const path = made.target.replace(liveRecord, live)
      target.sandbox?.clearFaults()
      if (fault) target.sandbox?.fault(fault)
      const answer = await send(target, { ...made, target: path }, tokenFor(made))
      if (fault && target.sandbox?.faults.every(({ times }) => times < fault.times)) faultsMet += 1
      live = /"hosts":\[\{"id":"(\w+)"/.exec(answer.text)?.[1] ?? live
      const key = `${made.operation.operationId} ${answer.status}`
      met.set(key, (met.get(key) ?? 0) + 1)
      if (!failing || !failures.includes(answer.status))
        expect(answer.status, `${path} ${made.body}: ${answer.text}`).toBeLessThan(500)
      expect(findFaults(made, answer, validate), answer.text.slice(0, 500)).toEqual([])
    })
    const done = () =>
      operations.filter(({ operationId }) => [...met.keys()].some((key) => key.startsWith(`${operationId} 2`)))
    const numRuns = cases(operations.length * (failing ? 3 : 5))
    const isEnough = () => done().length > operations.length * (failing ? 0.3 : 0.4) && (!failing || faultsMet > 10)
    for (let { seed = 1 } = fc.readConfigureGlobal(), isOver = false; !isOver; seed += 1) {
      await fc.assert(property, { numRuns, seed, endOnFailure: true })
      isOver = isEnough()
    }
    if (process.env.FUZZ_CASES) console.table(Object.fromEntries([...met].sort()))

    const errors = target.lines().filter(({ level }) => level === 'error' || level === 'fatal')
    expect(errors.filter(({ msg }) => !failing || !doubts.test(String(msg)))).toEqual([])
    expect(target.lines().flatMap((line) => leaksIn(JSON.stringify(line)))).toEqual([])
  }, 1_800_000)
})
