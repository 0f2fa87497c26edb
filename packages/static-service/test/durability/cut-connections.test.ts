import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PostgresProxy, type StatementFault } from '../../../../test/support/postgres/postgres-proxy.ts'
import { check } from '../../src/maintenance/files-command.ts'
import { openShared } from '../../src/maintenance/stores.ts'
import { type CutChange, contentOf, cutChanges, type Files } from '../support/cut-changes.ts'
import type { Fault } from '../support/s3/s3-server.ts'
import { type SharedStores, startSharedStores } from '../support/shared-stores.ts'
import { type Answer, type Service, start } from '../support/start.ts'
import { digestOf } from '../support/stored-contents.ts'

// CUT_POINTS=all is the long form: `npm run faults`. The short one breaks every eighth statement, and every other call.
const isWhole = process.env.CUT_POINTS === 'all'
const [statementStep, callStep] = isWhole ? [1, 1] : [8, 2]
const isIncluded = (part: { isOnlyWhole?: boolean }) => isWhole || !part.isOnlyWhole

interface Setup {
  stores: SharedStores
  proxy: PostgresProxy
  service: Service
}

/** Breaks one statement or call by its number from now on, until it is disposed of. */
interface Break extends Disposable {
  /** Whether there was one. */
  isDone: () => boolean
}

interface Breaker {
  name: string
  step: number
  isOnlyWhole?: boolean
  start: (setup: Setup, number: number) => Break
}

const allBreakers: Breaker[] = [
  {
    name: 'statement-lost',
    step: statementStep,
    start: (setup, number) => breakStatement(setup, number, 'lose'),
  },
  {
    name: 'statement-hidden',
    step: statementStep,
    start: (setup, number) => breakStatement(setup, number, 'hide'),
  },
  // At COMMIT it takes the five seconds of the look-up.
  { name: 'database-away', step: 1, isOnlyWhole: true, start: breakDatabase },
  {
    name: 'call-cut',
    step: callStep,
    isOnlyWhole: true,
    start: (setup, number) => breakCall(setup, number, 'cut-request'),
  },
  {
    name: 'response-cut',
    step: callStep,
    start: (setup, number) => breakCall(setup, number, 'lost-response'),
  },
  { name: 'store-away', step: callStep, start: breakStore },
]
const breakers = allBreakers.filter(isIncluded)
const changes = cutChanges.filter(isIncluded).map((change, at) => ({ ...change, at }))

describe('a change whose connections break, at each statement and call in turn', () => {
  const stack = new AsyncDisposableStack()
  let setup: Setup

  beforeAll(async () => {
    const stores = stack.use(await startSharedStores())
    const proxy = stack.use(await PostgresProxy.open(stores.env.DATABASE_URL ?? ''))
    const env = { ...stores.env, DATABASE_URL: proxy.url, DATABASE_TIMEOUT_MS: '30000' }
    setup = { stores, proxy, service: stack.use(await start({ env })) }
  })
  afterAll(() => stack.disposeAsync())

  it.for(changes)('$name is done when it is acknowledged, and not when it is refused', async ({ at, ...change }) => {
    for (const breaker of breakers) {
      // Not the same statements of all changes.
      for (let number = at % breaker.step; ; number += breaker.step) {
        const directory = `${at}-${breaker.name}-${number}`
        if (!(await breakOne(setup, { change, breaker, number, directory }))) break
      }
    }
  })

  it('leaves no object that is neither a content nor waits for its deletion, and no temporary file', async () => {
    await setup.service.close()

    await expectNoLeak(setup)
  })
})

interface Case {
  change: CutChange
  breaker: Breaker
  number: number
  directory: string
}

/** Makes a change with one fault; false if it needs fewer statements or calls. */
async function breakOne(setup: Setup, { change, breaker, number, directory }: Case): Promise<boolean> {
  const { service } = setup
  for (const [path, kind] of Object.entries(change.before)) {
    const body = contentOf(directory, kind)
    await untilAvailable(() => service.call('PUT', `/api/files/${directory}/${path}`, { body }))
  }
  const states = [change.before, change.after].map((files, at) =>
    JSON.stringify(expectedState(directory, files, change.isRecord === true && at === 1)),
  )
  const [, after] = states

  using fault = breaker.start(setup, number)
  const answer = await change.make(service, directory)
  fault[Symbol.dispose]()

  const state = JSON.stringify(await stateOf(setup, directory))
  expect(allowed(answer, change, states), `${directory}: ${answer.status} ${answer.body.code}`).toContain(state)
  const repeated = await untilAvailable(() => change.make(service, directory))
  expect(repeated.status).toBe(state === after ? change.repeated : change.status)
  expect(JSON.stringify(await stateOf(setup, directory))).toBe(after)
  return fault.isDone()
}

function allowed({ status, body }: Answer, change: CutChange, states: string[]) {
  const [before, after] = states
  if (status === change.status) return [after]
  if (status === 503 && body.code === 'unavailable') return [before]
  return status === 503 && body.code === 'outcome_unknown' ? states : []
}

// Connections that are cut while they are idle may be used once more.
async function untilAvailable(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await ask()
    if (answer.status !== 503) return answer
  }
}

const expectedState = (directory: string, files: Files, isRecorded: boolean) => ({
  files: Object.entries(files).map(([path, kind]) => [`${directory}/${path}`, digestOf(contentOf(directory, kind))]),
  versions: isRecorded ? 1 : 0,
})

async function stateOf({ stores }: Setup, directory: string) {
  const files = await stores.query<{ path: string; digest: string }>(
    'select path, digest from static_service.files where starts_with(path, $1) order by path',
    [`${directory}/`],
  )
  const versions = await stores.query('select from static_service.versions where version = $1', [directory])
  return { files: files.map(({ path, digest }) => [path, digest]), versions: versions.length }
}

// Nothing of a request: what the service asks in the background.
const background = /^select 1$|static_service\.commits where/

function countStatements({ proxy }: Setup, number: number, act: () => StatementFault | undefined): Break {
  let seen = 0
  proxy.onStatement = (sql) => {
    if (background.test(sql)) return undefined
    seen += 1
    return seen === number + 1 ? act() : undefined
  }
  return {
    isDone: () => seen > number,
    [Symbol.dispose]: () => {
      proxy.onStatement = undefined
      proxy.resume()
    },
  }
}

const breakStatement = (setup: Setup, number: number, fault: StatementFault) =>
  countStatements(setup, number, () => fault)

function breakDatabase(setup: Setup, number: number): Break {
  return countStatements(setup, number, () => {
    setup.proxy.refuse()
    return 'lose'
  })
}

function countCalls({ stores: { s3 } }: Setup, faultAt: (seen: number) => Fault | undefined): Break {
  let seen = 0
  let isDone = false
  s3.fault = ({ key }) => {
    if (key.endsWith('/probe')) return undefined
    const fault = faultAt(seen)
    seen += 1
    isDone ||= fault !== undefined
    return fault
  }
  return {
    isDone: () => isDone,
    [Symbol.dispose]: () => {
      s3.fault = () => undefined
    },
  }
}

const breakCall = (setup: Setup, number: number, kind: 'cut-request' | 'lost-response') =>
  countCalls(setup, (seen) => (seen === number ? { kind } : undefined))

function breakStore(setup: Setup, number: number) {
  return countCalls(setup, (seen) => (seen >= number ? { kind: 'cut-request' } : undefined))
}

/** Once the service has ended: every object is a content or waits for its deletion, and nothing else is left. */
async function expectNoLeak({ stores: { env, s3, query }, service }: Setup) {
  expect(await readdir(join(service.dataDir, 'tmp'))).toEqual([])
  await using shared = await openShared({ ...env, GARBAGE_GRACE_S: '0' })
  await query("update static_service.garbage set due_at = now() - interval '1 s'")
  await shared.blobs.sweep.runFor([])
  const rows = await query<{ object_key: string }>(
    'select object_key from static_service.contents where object_key is not null order by 1',
  )
  const objects = [...s3.store.objects.keys()].filter((key) => !key.endsWith('/probe'))
  expect(objects.sort()).toEqual(rows.map(({ object_key }) => object_key))
  const begun = [...s3.store.uploads.values()].filter(({ parts }) => parts.size > 0)
  expect(begun).toEqual([])
  expect(await check(env)).toMatchObject({ damages: [], orphans: [] })
}
