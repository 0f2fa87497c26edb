import { HttpError } from '@domains-and-files/http'
import { expect, test, vi } from 'vitest'
import type { Domain } from '../../src/dns/domain-name.ts'
import { applyEdit } from '../../src/dns/edits/apply-edit.ts'
import type { EnsureEdit } from '../../src/dns/edits/zone-edit.ts'
import type { Zone } from '../../src/dns/zone.ts'
import {
  registrarBusy,
  registrarTimeout,
  registrarUnavailable,
  registrarUnreachable,
  writeNotConfirmed,
} from '../../src/errors.ts'
import { RetryingWriter } from '../../src/integrations/retrying-writer.ts'
import type { ChangeRequest } from '../../src/ledger/ledger.ts'
import { CallFailed } from '../../src/registrar/call-failed.ts'
import { FakeClock } from '../support/fake-clock.ts'

const domain: Domain = { name: 'example.com', sld: 'example', tld: 'com' }
const edit = (address: string): EnsureEdit => ({
  kind: 'ensure',
  present: [{ name: 'a', type: 'TXT', address }],
  absent: [],
})
const context = { caller: { id: '1', username: 'admin', role: 'admin' as const }, requestId: 'r' }

const callFailed = new CallFailed('unknown', registrarUnreachable('reset'))

function setUp(outcome: () => Promise<unknown>, retryNow = async () => {}) {
  const clock = new FakeClock()
  const queued: ChangeRequest[] = []
  const statuses = new Map<number, { status: string; problem?: object; summary?: object }>()
  const zone: Zone = { domain: domain.name, usesRegistrarDns: true, emailType: 'NONE', rows: [] }
  const zones = {
    queue: {
      write: outcome,
      add: async (_domain: Domain, each: ChangeRequest) => {
        queued.push(each)
        statuses.set(queued.length, { status: 'queued' })
        return { id: queued.length }
      },
      retryNow,
    },
    readOrKnown: async () => zone,
  }
  const ledger = { find: async (id: number) => ({ id, ...statuses.get(id) }) }
  // Only what the writer uses.
  const options = { zones, ledger, clock } as never
  return { writer: new RetryingWriter(options), clock, queued, statuses, zone }
}

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: unknown) => (error instanceof HttpError ? error.code : error),
  )

test('after 25 s the client gets 503 with Retry-After, and the write goes on', async () => {
  const end = Promise.withResolvers<unknown>()
  const { writer, clock } = setUp(() => end.promise)
  const written = writer.write(domain, edit('v'), context).catch((error: unknown) => error)

  await clock.advance(25_000)

  const error = await written
  end.reject(new Error('later')) // Unhandled, it would fail this test.
  expect(error).toMatchObject({
    status: 503,
    code: 'registrar_busy',
    message: 'The change is not done yet: try again in 15 s',
    headers: { 'retry-after': '15' },
  })
})

test('a write that found no free calls is queued once, however often it is repeated', async () => {
  const { writer, clock, queued, statuses } = setUp(() => Promise.reject(registrarBusy(30)))
  const attempt = async (address: string) => {
    const code = codeOf(writer.write(domain, edit(address), context))
    await clock.advance(25_000)
    return code
  }

  const codes = [await attempt('v'), await attempt('v'), await attempt('w')]
  statuses.set(1, { status: 'confirmed' })
  const done = await attempt('v')

  expect(codes).toEqual(['registrar_busy', 'registrar_busy', 'registrar_busy'])
  expect(done).toBe('registrar_busy')
  expect(queued.map((write) => write.edit)).toEqual([edit('v'), edit('w'), edit('v')])
})

test('the same write of another caller is no repeat', async () => {
  const { writer, clock, queued } = setUp(() => Promise.reject(registrarBusy(30)))

  for (const id of ['1', '2']) {
    const written = codeOf(writer.write(domain, edit('v'), { ...context, caller: { ...context.caller, id } }))
    await clock.advance(25_000)
    expect(await written).toBe('registrar_busy')
  }

  expect(queued.map(({ callerId }) => callerId)).toEqual(['1', '2'])
})

test('a repeat of what another write has undone meanwhile is queued after that', async () => {
  const { writer, clock, queued } = setUp(() => Promise.reject(registrarBusy(30)))
  const undone: EnsureEdit = { kind: 'ensure', present: [], absent: edit('v').present }
  const attempt = async (each: EnsureEdit) => {
    const code = codeOf(writer.write(domain, each, context))
    await clock.advance(25_000)
    return code
  }

  for (const each of [edit('v'), undone, edit('w'), edit('v'), edit('w')]) await attempt(each)

  expect(queued.map((write) => write.edit)).toEqual([edit('v'), undone, edit('w'), edit('v')])
})

test.each([
  [{ status: 'confirmed' }, 'done'],
  [{ status: 'refused', problem: { status: 409, code: 'record_conflict', detail: 'x' } }, 'record_conflict'],
  [{ status: 'cancelled' }, 'registrar_busy'],
])('a queued write that is %o within 25 s is answered so', async (end, code) => {
  const { writer, clock, statuses } = setUp(() => Promise.reject(registrarBusy(30)))
  const written = codeOf(writer.write(domain, edit('v'), context))
  await clock.advance(5_000)

  statuses.set(1, end)
  await clock.advance(1_000)

  expect(await written).toBe(code)
})

test.each([registrarUnavailable(5), registrarUnreachable('reset'), registrarTimeout(15_000)])(
  'a write that was not sent is queued: %s',
  async (error) => {
    const { writer, clock, queued } = setUp(() => Promise.reject(error))

    const written = codeOf(writer.write(domain, edit('v'), context))
    await clock.advance(25_000)

    expect([await written, queued.length]).toEqual(['registrar_busy', 1])
  },
)

test.each([
  ['until the client is answered where no call was free', registrarBusy(30), undefined, 4],
  ['until the client is answered where the circuit breaker was open', registrarBusy(30), registrarUnavailable(5), 4],
  ['not again where a call of the first try failed', registrarBusy(30), callFailed, 1],
  ['not at once where a call of the write failed', callFailed, undefined, 0],
])('a write that was queued is tried %s', async (_when, failure, outcome, tries) => {
  const retryNow = vi.fn(async () => {
    if (outcome) throw outcome
  })
  const { writer, clock } = setUp(() => Promise.reject(failure), retryNow)

  const written = codeOf(writer.write(domain, edit('v'), context))
  for (let second = 0; second < 24; second++) await clock.advance(1_000)
  const counted = retryNow.mock.calls.length
  await clock.advance(1_000)

  expect([await written, counted]).toEqual(['registrar_busy', tries])
})

/** A write of a client that waits as long as it is let. */
async function writeAndLeave({ writer, clock }: ReturnType<typeof setUp>) {
  const written = codeOf(writer.write(domain, edit('v'), context))
  await clock.advance(1_000)
  await clock.advance(24_000)
  return written
}

test('after its client has gone, a queued change claims its place every six seconds for ten minutes', async () => {
  const retryNow = vi.fn(async () => {})
  const parts = setUp(() => Promise.reject(registrarBusy(30)), retryNow)
  const written = await writeAndLeave(parts)
  retryNow.mockClear()

  await parts.clock.advance(700_000)

  expect([written, retryNow.mock.calls.length]).toEqual(['registrar_busy', 100])
  expect(retryNow).toHaveBeenLastCalledWith(domain, 1, '1')
})

test('a change that was repeated claims its place once at a time, until it is no longer queued', async () => {
  const retryNow = vi.fn(async () => {})
  const parts = setUp(() => Promise.reject(registrarBusy(30)), retryNow)
  for (let repeat = 0; repeat < 3; repeat++) await writeAndLeave(parts)
  retryNow.mockClear()

  await parts.clock.advance(60_000)
  const claimed = retryNow.mock.calls.length
  parts.statuses.set(1, { status: 'confirmed' })
  await parts.clock.advance(60_000)

  expect([claimed, retryNow.mock.calls.length]).toEqual([10, 10])
})

test.each([callFailed, registrarUnavailable(5)])(
  'a queued change claims no place after an attempt that failed: %s',
  async (failure) => {
    const retryNow = vi.fn(() => Promise.reject(failure))
    const parts = setUp(() => Promise.reject(registrarBusy(30)), retryNow)
    await writeAndLeave(parts)
    retryNow.mockClear()

    await parts.clock.advance(600_000)

    expect(retryNow).not.toHaveBeenCalled()
  },
)

test('a repeat of a change that is done is done while the zone shows it, and else queued again', async () => {
  const parts = setUp(() => Promise.reject(registrarBusy(30)))
  const { queued, statuses, zone } = parts
  await writeAndLeave(parts)
  statuses.set(1, { status: 'confirmed', summary: { added: [], removed: [], kept: 1 } })
  zone.rows.push(...applyEdit(zone, edit('v')).rows)
  const whileShown = [await writeAndLeave(parts), queued.length]
  zone.rows.length = 0
  const later = [await writeAndLeave(parts), queued.length]

  expect([whileShown, later]).toEqual([
    ['done', 1],
    ['registrar_busy', 2],
  ])
})

test('a write that may have been sent is not queued', async () => {
  const { writer, queued } = setUp(() => Promise.reject(writeNotConfirmed('differs')))

  const code = await codeOf(writer.write(domain, edit('v'), context))

  expect([code, queued]).toEqual(['write_not_confirmed', []])
})
