import { expect, test } from 'vitest'
import { failSends } from '../../support/failing-sends.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { type Service, start } from '../../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const add = (service: Service, name: string) =>
  service.call('POST', `${hosts}/A`, { body: { name, address: '192.0.2.9' } })

test('a write whose intent cannot be recorded is a 503, and nothing is sent; reads go on', async () => {
  await using service = await start({ clock: new FakeClock() })
  const repair = failSends(service, 'insert')

  const failed = await add(service, 'a')
  const read = await service.call('GET', hosts)
  repair()
  const again = await add(service, 'a')

  expect([failed.status, failed.body.code, read.status]).toEqual([503, 'unavailable', 200])
  expect(again.status).toBe(201)
  expect(service.commands().filter((command) => command === 'dns.sethosts')).toHaveLength(1)
})

test('a write whose outcome cannot be recorded is done, with a warning, and resolved by the next one', async () => {
  await using service = await start()
  const repair = failSends(service, 'update')

  const { status, body } = await add(service, 'a')
  repair()
  await add(service, 'b')

  expect([status, body.warnings]).toEqual([
    201,
    [expect.stringContaining('could not be recorded in the history')],
  ])
  const { body: history } = await service.call('GET', '/api/domains/example.com/dns/history')
  expect(history.history).toMatchObject([{ status: 'confirmed' }, { status: 'confirmed' }])
})
