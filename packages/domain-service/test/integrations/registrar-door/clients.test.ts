import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { dataDirectory } from '../../../../../test/support/not-tested.ts'
import { type DoorRow, openDoor, readAnswer, split, toRows } from '../../support/door.ts'
import { openNpmClient, turnNpmClients } from '../../support/npm-client.ts'
import { createToken } from '../../support/protocol-client.ts'
import { startReplicas } from '../../support/replicas.ts'
import { start } from '../../support/start.ts'

const path = '/integrations/registrar/xml.response'
const domains = [
  {
    name: 'example.com',
    emailType: 'FWD' as const,
    hosts: [{ name: 'www', type: 'A', address: '192.0.2.1' }],
  },
]
const txt = (name: string): DoorRow => ({ HostName: name, RecordType: 'TXT', Address: name })

test('an npm client reads and writes beside another client', async () => {
  await using service = await start({ domains })
  using _ = turnNpmClients(service.url)
  const client = openNpmClient(await createToken(service, { role: 'editor' }))
  const other = await openDoor(service)

  const list = await client.domains.getList({})
  const zone = await client.dns.getHosts('example.com')
  await other.setHosts([...(await other.rows()), txt('other')])
  const hosts = [
    { HostName: 'www', RecordType: 'A', Address: '192.0.2.1' },
    { HostName: '@', RecordType: 'MX', Address: 'mx.example.net.', MXPref: 5 },
  ]
  const written = await client.dns.setHosts('example.com', hosts, { EmailType: 'MX' })
  const wrong = openNpmClient('wrong').dns.getHosts('example.com')

  expect(list.domains).toMatchObject([{ Name: 'example.com' }])
  expect(zone).toMatchObject({ EmailType: 'FWD', hosts: [{ Name: 'www', Type: 'A', TTL: 1800 }] })
  expect(written).toMatchObject({ IsSuccess: true })
  await expect(wrong).rejects.toMatchObject({ props: { Number: 1011102 } })
  expect(service.live().sort()).toEqual([
    '@ MX mx.example.net. 1800 5',
    'other TXT other 1800 10',
    'www A 192.0.2.1 1800 10',
  ])
})

test('this service itself is a client: one before another', async () => {
  await using service = await start({ domains })
  const key = await createToken(service, { role: 'editor' })
  const { sandbox } = service
  const env = { REGISTRAR_URL: service.url + path, REGISTRAR_API_KEY: key }
  await using front = await start({ sandbox, env })
  const hosts = '/api/domains/example.com/dns/hosts'

  const added = await front.call('POST', `${hosts}/TXT`, { body: { name: 'a', address: 'a' } })
  const beside = await service.call('POST', `${hosts}/TXT`, { body: { name: 'b', address: 'b' } })
  const removed = await front.call('DELETE', `${hosts}/${added.body.id}`)
  const info = await front.call('GET', '/api/domains/example.com/info')
  const list = await front.call('GET', '/api/domains')
  const unknown = await front.call('GET', '/api/domains/example.org/dns/hosts')

  expect([added.status, beside.status, removed.status]).toEqual([201, 201, 200])
  expect(info.body).toMatchObject({ name: 'example.com', dns: { email_type: 'FWD' } })
  expect(list.body.domains).toMatchObject([{ name: 'example.com', uses_registrar_dns: true }])
  expect(unknown.status).toBe(404)
  expect(service.live()).toEqual(['www A 192.0.2.1 1800 10', 'b TXT b 1800 10'])
})

test('two clients that were given a zone by one replica write it by two others', async () => {
  await using stack = await startReplicas(3, { domains })
  const [first, second, third = second] = stack.replicas
  const keys = [await createToken(first, { role: 'editor' }), await createToken(first, { role: 'editor' })]
  const [one, other] = await Promise.all(keys.map((key) => openDoor(first, key)))
  const zones = await Promise.all([one?.rows(), other?.rows()])
  const doors = [await openDoor(second, keys[0]), await openDoor(third, keys[1])]

  const set = (at: number, ...rows: DoorRow[]) => doors[at]?.setHosts([...(zones[at] ?? []), ...rows])
  await Promise.all([set(0, txt('one')), set(1, txt('other'))])
  const back = await one?.setHosts(zones[0] ?? [])

  expect(back?.numbers).toEqual([])
  expect(first.live()).toEqual(['www A 192.0.2.1 1800 10', 'other TXT other 1800 10'])
})

const recordings = dataDirectory('REGISTRAR_DATA')
const RoundTrips = z.object({
  roundtrips: z.array(
    z.object({
      SLD: z.string(),
      TLD: z.string(),
      sent: z.array(z.record(z.string(), z.string())),
      get_response: z.string(),
    }),
  ),
})

test(
  existsSync(recordings)
    ? 'recorded round trips leave the zones that were recorded'
    : `there are no recordings at ${recordings}, so no round trip was replayed`,
  async () => {
    if (!existsSync(recordings)) return
    const text = readFileSync(join(recordings, 'roundtrips.json'), 'utf8')
    const { roundtrips } = RoundTrips.parse(JSON.parse(text))
    const names = new Set(roundtrips.map(({ SLD, TLD }) => `${SLD}.${TLD}`))
    await using service = await start({
      domains: [...names].map((name) => ({ name, emailType: 'FWD' as const })),
    })
    const door = await openDoor(service)
    const read = (name: string) =>
      readAnswer({
        status: 200,
        text: readFileSync(join(recordings, 'answers/dns-lexicon-sandbox', name), 'utf8'),
      })
    const shapeOf = (answer: ReturnType<typeof read>) => [
      answer.all('DomainDNSGetHostsResult'),
      answer.all('host').map((host) => Object.keys(host)),
      toRows(answer)
        .map((row) => Object.values(row).join(' '))
        .sort(),
    ]
    for (const { SLD, TLD, sent, get_response } of roundtrips) {
      const name = `${SLD}.${TLD}`
      await door.getHosts(name)
      const rows = sent.map((row) => ({ HostName: '', RecordType: '', Address: '', ...row }))

      const written = await door.setHosts(rows, split(name), name)

      expect(written.numbers).toEqual([])
      expect(shapeOf(await door.getHosts(name))).toEqual(shapeOf(read(get_response)))
    }
  },
)
