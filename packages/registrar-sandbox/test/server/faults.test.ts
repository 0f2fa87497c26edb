import { expect, test } from 'vitest'
import { read, split, start } from '../support/start.ts'

const name = 'quietharbour.org'
const gethosts = { Command: 'namecheap.domains.dns.getHosts', ...split(name) }
const sethosts = {
  Command: 'namecheap.domains.dns.setHosts',
  ...split(name),
  HostName1: '@',
  RecordType1: 'TXT',
  Address1: 'written',
}
type Registrar = Awaited<ReturnType<typeof start>>
const isWritten = ({ sandbox }: Registrar) => sandbox.zone(name).hosts.some(({ address }) => address === 'written')

test.each([
  ['reset', false],
  ['lost', true],
] as const)('%s hangs up without an answer (was it written: %s)', async (kind, written) => {
  await using registrar = await start()
  registrar.sandbox.fault({ kind })

  const outcome = registrar.send(sethosts)

  await expect(outcome).rejects.toThrow(/hang up|ECONNRESET/)
  expect(isWritten(registrar)).toBe(written)
})

test('cut announces the full length and closes after the given byte', async () => {
  await using registrar = await start()
  registrar.sandbox.fault({ kind: 'cut', at: 300 })

  const outcome = registrar.send(gethosts)

  await expect(outcome).rejects.toThrow('aborted')
})

test('cut without a length looks like a shorter complete answer', async () => {
  await using registrar = await start()
  const whole = await registrar.send(gethosts)
  registrar.sandbox.fault({ kind: 'cut', at: 300, framing: 'close' })

  const answer = await registrar.send(gethosts)

  expect(answer).toMatchObject({ status: 200, type: 'text/xml; charset=utf-8' })
  expect(answer.body).toBe(whole.body.slice(0, 300))
})

test('hang starts an answer and ends only with the sandbox', async () => {
  await using registrar = await start()
  registrar.sandbox.fault({ kind: 'hang' })

  const outcome = expect(registrar.send(gethosts)).rejects.toThrow()
  await expect.poll(() => registrar.sandbox.calls[0]?.outcome).toBe('ok')
  await registrar.sandbox.close()

  await outcome
  expect(registrar.sandbox.calls[0]?.fault).toBe('hang')
})

test.each([
  ['before', false],
  ['after', true],
] as const)('slow waits %s the command is carried out (was it written: %s)', async (when, written) => {
  await using registrar = await start()
  registrar.sandbox.fault({ kind: 'slow', ms: 600_000, when })

  const outcome = expect(registrar.send(sethosts)).rejects.toThrow()
  await expect.poll(() => registrar.sandbox.calls[0]?.outcome).toBe('under way')
  await expect.poll(() => isWritten(registrar)).toBe(written)
  await registrar.sandbox.close()

  await outcome
  expect(isWritten(registrar)).toBe(written)
})

test('a slow call goes on when the faults are cleared, and later ones are not delayed', async () => {
  await using registrar = await start()
  registrar.sandbox.fault({ kind: 'slow', ms: 600_000, times: 2 })
  const outcome = registrar.send(sethosts)
  await expect.poll(() => registrar.sandbox.calls[0]?.outcome).toBe('under way')

  registrar.sandbox.clearFaults()
  await outcome
  await registrar.send(sethosts)

  expect(registrar.sandbox.calls.map((call) => call.outcome)).toEqual(['ok', 'ok'])
})

test('slow answers as usual after its time, and combines with another fault', async () => {
  await using registrar = await start()
  registrar.sandbox.fault({ kind: 'slow', ms: 1 }, { kind: 'html' }, { kind: 'slow', ms: 1 })

  const both = await registrar.send(gethosts)
  const slow = await registrar.send(gethosts)

  expect([both.status, slow.status]).toEqual([503, 200])
  expect(read(slow.body).status).toBe('OK')
})

test.each([
  [{ kind: 'html' }, 503, 'text/html; charset=utf-8', /^<!doctype html>/],
  [{ kind: 'html', status: 200 }, 200, 'text/html; charset=utf-8', /^<!doctype html>/],
  [{ kind: 'status' }, 405, 'text/plain; charset=utf-8', /^Too many requests$/],
  [{ kind: 'status', status: 502, message: '' }, 502, 'text/plain; charset=utf-8', /^$/],
  [{ kind: 'error' }, 200, 'text/xml; charset=utf-8', /<Error Number="500000">Too many requests</],
  [{ kind: 'is_success_false' }, 200, 'text/xml; charset=utf-8', /Status="OK"[\s\S]*IsSuccess="false"/],
  [{ kind: 'ignored' }, 200, 'text/xml; charset=utf-8', /Status="OK"[\s\S]*IsSuccess="true"/],
] as const)('%o answers with its page and writes nothing', async (fault, status, type, pattern) => {
  await using registrar = await start()
  registrar.sandbox.fault(fault)

  const answer = await registrar.send(sethosts)

  expect(answer).toMatchObject({ status, type })
  expect(answer.body).toMatch(pattern)
  expect(isWritten(registrar)).toBe(false)
})

test.each([
  [{ kind: 'html', execute: true }, /^<!doctype html>/],
  [{ kind: 'error', number: 3050900, message: 'a < b', execute: true }, /"3050900">a &lt; b</],
  [{ kind: 'empty' }, /^$/],
  [{ kind: 'no_close' }, /<\/ExecutionTime>\r\n$/],
  [{ kind: 'wrong_command' }, /<RequestedCommand>namecheap.domains.gettldlist</],
  [{ kind: 'wrong_command', answer: 'namecheap.domains.dns.getHosts' }, /EmailType="NONE"/],
  [{ kind: 'status_error_without_errors' }, /Status="ERROR"[\s\S]*<Errors \/>[\s\S]*IsSuccess="true"/],
  [{ kind: 'doctype' }, /<!DOCTYPE ApiResponse \[<!ENTITY who[\s\S]*<Server>&who;</],
] as const)('%o carries the write out and does not say so properly', async (fault, pattern) => {
  await using registrar = await start()
  registrar.sandbox.fault(fault)

  const answer = await registrar.send(sethosts)

  expect(answer.body).toMatch(pattern)
  expect(isWritten(registrar)).toBe(true)
})

test('an error can carry the usual result', async () => {
  await using registrar = await start()
  registrar.sandbox.fault({ kind: 'error', number: 2030166, message: 'no', skeleton: true })

  const answer = read((await registrar.send(gethosts)).body)

  expect(answer.errors).toEqual([['2030166', 'no']])
  expect(answer.first('DomainDNSGetHostsResult')).toMatchObject({ '@Domain': name })
})

test('junk starts like an answer and continues for the given MiB', async () => {
  await using registrar = await start()
  registrar.sandbox.fault({ kind: 'junk', mib: 3 })

  const answer = await registrar.send(gethosts)

  expect(answer.body).toMatch(/^<\?xml version="1\.0" encoding="utf-8"\?>\r\n<ApiResponse Status="OK">/)
  expect(answer.body.length).toBeGreaterThan(3 * 1024 * 1024)
})

test('a fault affects only its command and domain, after so many calls, so many times', async () => {
  await using registrar = await start()
  const command = gethosts.Command.toUpperCase()
  registrar.sandbox.fault({ kind: 'status', command, domain: name, after: 1, times: 2 })
  const other = { ...gethosts, SLD: 'copperkettle', TLD: 'net' }

  const statuses: number[] = []
  for (const params of [other, sethosts, gethosts, gethosts, other, gethosts, gethosts]) {
    statuses.push((await registrar.send(params)).status)
  }

  expect(statuses).toEqual([200, 200, 200, 405, 200, 405, 200])
  expect(registrar.sandbox.faults).toEqual([])
})

test('a fault with times=0 stays until it is cleared', async () => {
  await using registrar = await start()
  registrar.sandbox.fault({ kind: 'status', times: 0 })

  const struck = await Promise.all([1, 2, 3].map(() => registrar.send(gethosts)))
  registrar.sandbox.clearFaults()
  const spared = await registrar.send(gethosts)

  expect(struck.map(({ status }) => status)).toEqual([405, 405, 405])
  expect(spared.status).toBe(200)
})

test('faults and calls are managed over HTTP too', async () => {
  await using registrar = await start()
  const faults = new URL('/_faults', registrar.sandbox.url)
  const calls = new URL('/_calls', registrar.sandbox.url)
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ faults: [{ kind: 'status', status: 418 }, { kind: 'lost' }] })

  const posted = await fetch(faults, { method: 'POST', headers, body })
  const struck = await registrar.send(gethosts)
  const left = await (await fetch(faults)).json()
  const cleared = await fetch(faults, { method: 'DELETE' })
  const listed = await (await fetch(calls)).json()
  const forgotten = await fetch(calls, { method: 'DELETE' })

  expect([posted.status, struck.status, cleared.status, forgotten.status]).toEqual([201, 418, 204, 204])
  expect(left).toMatchObject({ faults: [{ kind: 'lost' }] })
  expect(listed).toMatchObject({ calls: [{ domain: name, outcome: 'ok', fault: 'status' }] })
  expect([registrar.sandbox.faults, registrar.sandbox.calls]).toEqual([[], []])
})

test.each([
  '{"faults":[{"kind":"unheard-of"}]}',
  '{"faults":[{"kind":"slow","seconds":1}]}',
  '{"faults":[{"kind":"slow","ms":-1}]}',
  '{"faults":[{"kind":"other_tool","add":[{"name":"a","type":"A","address":"192.0.2.1","TTL":60}]}]}',
  '{"faults":[]}',
  '{"fault":{"kind":"lost"}}',
])('invalid faults %s are refused entirely', async (body) => {
  await using registrar = await start()
  const faults = new URL('/_faults', registrar.sandbox.url)

  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(faults, { method: 'POST', headers, body })

  expect(answer.status).toBe(400)
  expect(registrar.sandbox.faults).toEqual([])
})
