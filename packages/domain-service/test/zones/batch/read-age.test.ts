import { expect, test } from 'vitest'
import { driveClock } from '../../support/drive-clock.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { joinWrites } from '../../support/join-writes.ts'
import { realRate, type Service, start, www } from '../../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const getHosts = 'namecheap.domains.dns.getHosts'
const setHosts = 'namecheap.domains.dns.setHosts'
const panel = { name: 'panel', type: 'A', address: '192.0.2.50' }

const namesOf = (service: Service) =>
  service.sandbox
    .zone('example.com')
    .hosts.map(({ name }) => name)
    .toSorted()

/** Waits until a setHosts is under way, then lets another tool write, and a second and a half pass. */
async function changeDuringSend(service: Service, clock: FakeClock, rows: object[]) {
  await expect.poll(service.commands).toContain('dns.sethosts')
  await service.sandbox.setZone('example.com', { hosts: [...rows, panel] as never })
  await clock.advance(1_500)
}

test('a write that waits for its slot after the read does not erase what another tool wrote meanwhile', async () => {
  const clock = new FakeClock()
  await using service = await start({ env: { REGISTRAR_RATE: realRate }, clock })
  // The registrar wants no call for a second: the write is held back after its read.
  service.sandbox.fault({ kind: 'status', status: 405, command: setHosts })

  const answer = service.call('POST', `${hosts}/A`, {
    body: { name: 'ours', address: '192.0.2.9' },
  })
  await changeDuringSend(service, clock, [www])
  const { status, body } = await driveClock(clock, service, answer)

  expect([status, body.name]).toEqual([201, 'ours'])
  expect(namesOf(service)).toEqual(['ours', 'panel', 'www'])
  const { body: history } = await service.call('GET', '/api/domains/example.com/dns/history')
  const { body: entry } = await service.call('GET', `/api/domains/example.com/dns/history/${history.history?.[0]?.id}`)
  expect(entry).toMatchObject({ before: { hosts: [{ name: 'panel' }, { name: 'www' }] } })
})

test('each part of a divided batch is based on a read of the last second', async () => {
  const clock = new FakeClock()
  await using service = await start({ env: { REGISTRAR_TIMEOUT_MS: '60000' }, clock })
  const refusal = {
    kind: 'refused_row',
    named: false,
    address: '192.0.2.66',
    command: setHosts,
    times: 0,
  } as const
  const held = { kind: 'slow', ms: 60_000, when: 'after', command: setHosts } as const
  const bodies = [
    { name: 'good', address: '192.0.2.9' },
    { name: 'bad', address: '192.0.2.66' },
  ]

  const written = joinWrites({ services: [service], count: 2, faults: [held, refusal] }, (n) =>
    service.call('POST', `${hosts}/A`, { body: bodies[n] }),
  )
  await changeDuringSend(service, clock, [www])
  service.sandbox.clearFaults()
  service.sandbox.fault(refusal)
  const answers = await driveClock(clock, service, written)

  expect(answers.map(({ status }) => status)).toEqual([201, 422])
  expect(namesOf(service)).toEqual(['good', 'panel', 'www'])
})

test('an answer that was long on its way does not erase what another tool wrote meanwhile', async () => {
  const clock = new FakeClock()
  await using service = await start({ env: { REGISTRAR_TIMEOUT_MS: '60000' }, clock })
  service.sandbox.fault({ kind: 'slow', ms: 60_000, when: 'after', command: getHosts })

  const answer = service.call('POST', `${hosts}/A`, {
    body: { name: 'ours', address: '192.0.2.9' },
  })
  await expect.poll(service.commands).toContain('dns.gethosts')
  await service.sandbox.setZone('example.com', { hosts: [www, panel] as never })
  await clock.advance(1_001)
  service.sandbox.clearFaults()

  expect((await driveClock(clock, service, answer)).status).toBe(201)
  expect(namesOf(service)).toEqual(['ours', 'panel', 'www'])
})

test('a precondition is evaluated again on the zone that is read again', async () => {
  const clock = new FakeClock()
  await using service = await start({ clock })
  const etag = (await service.call('GET', hosts)).headers.get('etag') ?? ''
  service.sandbox.fault({ kind: 'status', status: 405, command: setHosts })

  const answer = service.call('POST', `${hosts}/A`, {
    body: { name: 'ours', address: '192.0.2.9' },
    headers: { 'if-match': etag },
  })
  await changeDuringSend(service, clock, [www])

  const { body: problem } = await driveClock(clock, service, answer)
  expect(problem.code).toBe('precondition_failed')
  expect(namesOf(service)).toEqual(['panel', 'www'])
  const { body } = await service.call('GET', '/api/domains/example.com/dns/history')
  expect(body.history).toEqual([])
})

test('PUT with If-None-Match: * is refused, since a zone always exists', async () => {
  await using service = await start()

  const { status, body } = await service.call('PUT', hosts, {
    body: { hosts: [] },
    headers: { 'if-none-match': '*' },
  })

  expect([status, body.code]).toEqual([412, 'precondition_failed'])
  expect(service.commands()).toEqual(['dns.gethosts'])
})
