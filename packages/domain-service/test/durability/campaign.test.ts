import type { FaultInput } from '@domains-and-files/registrar-sandbox'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Answer, type Service, start } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const untouched = [
  { name: '@', type: 'MX', address: 'mx.example.net.', mxPref: 0, ttl: 1799 },
  { name: 'Kept', type: 'CNAME', address: 'Target.Example.net', ttl: 60 },
]

const faults = fc.constantFrom<FaultInput>(
  { kind: 'lost' },
  { kind: 'reset' },
  { kind: 'cut', framing: 'close' },
  { kind: 'cut', framing: 'length' },
  { kind: 'html', status: 200 },
  { kind: 'status', status: 500 },
  { kind: 'error', number: 3050900 },
  { kind: 'error', number: 3050900, execute: true },
  { kind: 'error', number: 9999999 },
  { kind: 'error', number: 9999999, execute: true },
  { kind: 'error', number: 2011170 },
  { kind: 'no_close' },
  { kind: 'empty' },
  { kind: 'is_success_false' },
  { kind: 'ignored' },
  { kind: 'doctype' },
)
const strikes = fc.array(fc.record({ fault: faults, after: fc.nat(3), isWrite: fc.boolean() }), {
  maxLength: 3,
})
const rounds = fc.array(fc.record({ strikes, adds: fc.integer({ min: 1, max: 6 }), removes: fc.nat(2) }), {
  minLength: 4,
  maxLength: 8,
})

type Promised = 'done' | 'not done' | 'open'

/** What an answer promises of its change. `isIgnored` tells whether the registrar did not do what it reported. */
function promiseOf({ status, body }: Answer, isIgnored: () => boolean): Promised {
  // A success that could not be read back is no more than the registrar's own report.
  if (status < 300) return body.verified === false && isIgnored() ? 'open' : 'done'
  return body.code === 'write_not_confirmed' ? 'open' : 'not done'
}

/** Whether the registrar ignored, since so many calls, a write that leaves the zone with or without this name. */
const hasIgnored = ({ sandbox }: Service, since: number, name: string, isPresent: boolean) =>
  sandbox.calls
    .slice(since)
    .filter(({ command, fault }) => command.endsWith('sethosts') && fault === 'ignored')
    .some(({ params }) => Object.values(params).includes(name) === isPresent)

// The registrar ignores a write, and refuses to show the zone after it.
const unnoticed = [
  {
    strikes: [
      { fault: { kind: 'ignored' } as const, after: 0, isWrite: true },
      { fault: { kind: 'error', number: 2011170 } as const, after: 1, isWrite: false },
    ],
    adds: 1,
    removes: 0,
  },
]

test('whatever the registrar does, confirmed writes are live, failed ones are not, and nothing else changes', async () => {
  await fc.assert(
    fc.asyncProperty(rounds, async (plan) => {
      await using service = await start({
        domains: [{ name: 'example.com', emailType: 'MX', hosts: untouched }],
      })
      const promised = new Map<string, Promised>()
      const gone = new Map<string, Promised>()
      let count = 0
      for (const { strikes, adds, removes } of plan) {
        const added = [...promised].filter(([, promise]) => promise === 'done').map(([name]) => name)
        const { body } = await service.call('GET', hosts, {
          headers: { 'cache-control': 'no-cache' },
        })
        const ids = new Map(body.hosts?.map(({ name, id }) => [name, id]))
        for (const { fault, after, isWrite } of strikes) {
          service.sandbox.fault({
            ...fault,
            after,
            command: `namecheap.domains.dns.${isWrite ? 'setHosts' : 'getHosts'}`,
          })
        }
        const names = Array.from({ length: adds }, () => `h${count++}`)
        const leaving = added.filter((name) => !gone.has(name) && ids.has(name)).slice(0, removes)
        const since = service.sandbox.calls.length
        const promiseOfAdd = (name: string, answer: Answer) =>
          promiseOf(answer, () => hasIgnored(service, since, name, true))
        const promiseOfRemoval = (name: string, answer: Answer) =>
          promiseOf(answer, () => hasIgnored(service, since, name, false))
        await Promise.all([
          ...names.map(async (name) => {
            const body = { name, address: '192.0.2.1' }
            const answer = await service.call('POST', `${hosts}/A`, { body })
            promised.set(name, promiseOfAdd(name, answer))
          }),
          ...leaving.map(async (name) => {
            const answer = await service.call('DELETE', `${hosts}/${ids.get(name)}`)
            gone.set(name, promiseOfRemoval(name, answer))
          }),
        ])
        service.sandbox.clearFaults()
        // Something that succeeds, so that the circuit stays closed.
        await service.call('GET', '/api/domains', { headers: { 'cache-control': 'no-cache' } })
      }

      const live = service.sandbox.zone('example.com')
      const names = new Set(live.hosts.map(({ name }) => name))
      const broken = [...promised].filter(([name, promise]) => {
        const left = gone.get(name)
        if (promise === 'open' || left === 'open') return false
        return names.has(name) !== (promise === 'done' && left !== 'done')
      })
      expect(broken).toEqual([])
      expect(live.emailType).toBe('MX')
      expect(live.hosts).toEqual(expect.arrayContaining(untouched.map((row) => expect.objectContaining(row))))
    }),
    { numRuns: 7, examples: [[unnoticed]] },
  )
})
