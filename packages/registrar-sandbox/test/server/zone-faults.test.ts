import { expect, test } from 'vitest'
import { start } from '../support/start.ts'

const name = 'quietharbour.org'
const getHosts = 'namecheap.domains.dns.getHosts'
const setHosts = 'namecheap.domains.dns.setHosts'
const rowsOf = (...addresses: string[]) =>
  addresses.map((Address, index) => ({ HostName: `host${index}`, RecordType: 'A', Address }))

test('late hangs up and executes the command when told to', async () => {
  await using registrar = await start()
  registrar.sandbox.fault({ kind: 'late', command: setHosts })

  await expect(registrar.setHosts(name, rowsOf('192.0.2.7'))).rejects.toThrow(/hang up|ECONNRESET/)
  expect(await registrar.getHosts(name)).not.toContainEqual(expect.arrayContaining(['192.0.2.7']))
  await registrar.sandbox.runLate()

  expect(await registrar.getHosts(name)).toEqual([['host0', 'A', '192.0.2.7', '10', '1800']])
})

test('outdated shows the zone as it was before its last setHosts', async () => {
  await using registrar = await start()
  const before = await registrar.getHosts(name)
  await registrar.setHosts(name, rowsOf('192.0.2.7'))
  registrar.sandbox.fault({ kind: 'outdated', command: getHosts })

  const outdated = await registrar.getHosts(name)
  const current = await registrar.getHosts(name)

  expect(outdated).toEqual(before)
  expect(current).toEqual([['host0', 'A', '192.0.2.7', '10', '1800']])
})

test.each([
  [true, 'Parameter Address2 is invalid: not accepted'],
  [false, 'Parameter Address is invalid: a record is not accepted'],
])('refused_row refuses a zone with that address (named: %s)', async (named, words) => {
  await using registrar = await start()
  registrar.sandbox.fault({ kind: 'refused_row', address: '192.0.2.8', named, times: 0 })

  const refused = await registrar.setHosts(name, rowsOf('192.0.2.7', '192.0.2.8', '192.0.2.9'))
  const accepted = await registrar.setHosts(name, rowsOf('192.0.2.7', '192.0.2.9'))

  expect(refused).toMatchObject({ status: 'ERROR', errors: [['2011288', words]] })
  expect(accepted.status).toBe('OK')
  expect(await registrar.getHosts(name)).toHaveLength(2)
})

test('no_email_type leaves the attribute out', async () => {
  await using registrar = await start()
  registrar.sandbox.fault({ kind: 'no_email_type' })

  const answer = await registrar.call('domains.dns.getHosts', { SLD: 'quietharbour', TLD: 'org' })

  expect(answer.first('DomainDNSGetHostsResult')).not.toHaveProperty('@EmailType')
  expect(answer.list('host')).toHaveLength(2)
})

test.each([
  ['before', 3],
  ['after', 2],
] as const)('other_tool adds rows %s a call is executed', async (when, rows) => {
  await using registrar = await start()
  const add = [{ name: 'theirs', type: 'A', address: '192.0.2.99' }]
  registrar.sandbox.fault({ kind: 'other_tool', command: getHosts, when, add })

  const first = await registrar.getHosts(name)

  expect(first).toHaveLength(rows)
  expect(await registrar.getHosts(name)).toHaveLength(3)
})
