import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { access, exchange, recordings, start } from '../support/start.ts'

const folder = join(recordings, 'answers/dns-lexicon-sandbox')
const names = existsSync(folder) ? readdirSync(folder) : []
const recorded = (start: string) =>
  readFileSync(join(folder, names.find((name) => name.startsWith(start)) ?? ''), 'utf8')

// What differs from call to call and from registrar to registrar.
const volatile = [
  [/<Server>[^<]*/, '<Server>'],
  [/<GMTTimeDifference>--\d:00/, '<GMTTimeDifference>'],
  [/<ExecutionTime>\d+(\.\d{1,3})?</, '<ExecutionTime><'],
] as const

const mask = (body: string) => volatile.reduce((text, [pattern, substitute]) => text.replace(pattern, substitute), body)

// Only the tags and the names of the attributes, each line once.
const shapeOf = (body: string) => [
  ...new Set(
    mask(body)
      .replace(/="[^"]*"/g, '=""')
      .replace(/>[^<>\r\n]+</g, '><')
      .split('\n'),
  ),
]

if (names.length > 0) {
  test('a domain that is not in the account is described to the byte as recorded', async () => {
    await using registrar = await start()

    const answer = await registrar.send({
      Command: 'namecheap.domains.getInfo',
      DomainName: 'not-ours.example',
    })

    expect(mask(answer.body)).toBe(mask(recorded('domains.getInfo.ERROR')))
  })

  test('a successful setHosts is answered to the byte as recorded', async () => {
    const body = recorded('domains.dns.setHosts.OK')
    const name = /Domain="([^"]+)"/.exec(body)?.[1] ?? ''
    await using registrar = await start({ domains: [{ name }] })
    const [SLD = '', TLD = ''] = name.split('.')

    const answer = await registrar.send({ Command: 'namecheap.domains.dns.setHosts', SLD, TLD })

    expect(mask(answer.body)).toBe(mask(body))
  })

  test.each([
    ['domains.dns.getHosts', { SLD: 'quietharbour', TLD: 'org' }],
    ['domains.getInfo', { DomainName: 'quietharbour.org' }],
    ['domains.getList', { SearchTerm: 'field' }],
  ])('an answer of %s has the recorded elements, attributes, order and line ends', async (command, params) => {
    await using registrar = await start()

    const answer = await registrar.send({ Command: `namecheap.${command}`, ...params })

    const known = names.filter((name) => name.startsWith(`${command}.OK`))
    const shapes = known.map((name) => shapeOf(readFileSync(join(folder, name), 'utf8')))
    expect(shapes).toContainEqual(shapeOf(answer.body))
  })
} else {
  test(`there are no recordings at ${folder}, so none were compared`, () => {
    expect(names).toEqual([])
  })
}

test('every answer is UTF-8 XML in CRLF lines with nothing after the last tag', async () => {
  await using registrar = await start()

  const good = await registrar.send({ Command: 'namecheap.domains.getTldList' })
  const bad = await registrar.send({ Command: 'namecheap.domains.getTldList', ApiKey: 'wrong' })

  for (const answer of [good, bad]) {
    expect(answer).toMatchObject({ status: 200, type: 'text/xml; charset=utf-8' })
    expect(answer.body).toMatch(/^<\?xml version="1\.0" encoding="utf-8"\?>\r\n<ApiResponse /)
    expect(answer.body.endsWith('</ApiResponse>')).toBe(true)
    expect(answer.body.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/)
  }
})

test('parameters count in query and form, in any case; unknown ones are ignored', async () => {
  await using registrar = await start()
  const inAddress = `apiuser=${access.apiUser}&apikey=${access.apiKey}&CLIENTIP=127.0.0.1&Nonsense=1`

  const answer = await exchange(`${registrar.sandbox.url}?${inAddress}`, 'POST', {
    username: access.apiUser,
    command: 'NameCheap.Domains.GetInfo',
    domainname: 'QuietHarbour.ORG',
  })

  expect(answer.body).toContain('<RequestedCommand>namecheap.domains.getinfo</RequestedCommand>')
  expect(answer.body).toContain('<CommandResponse Type="namecheap.domains.getInfo">')
  expect(answer.body).toContain('DomainName="quietharbour.org"')
})

test('GET and POST give the same answer', async () => {
  await using registrar = await start({ now: () => 0 })
  const params = { Command: 'namecheap.domains.getList' }

  const answers = await Promise.all(['GET', 'POST'].map((way) => registrar.send(params, way)))

  expect(answers[0]?.body).toContain('<TotalItems>47</TotalItems>')
  expect(answers[0]).toEqual(answers[1])
})

test('any value survives the round trip through XML', async () => {
  await using registrar = await start()
  const values = ['a"b&c<d>e\'f', '  two  spaces ', 'tab\tcr\rlf\nend', '+/=%;#', 'žluťoučký 🐎', '&quot;']

  await registrar.setHosts(
    'quietharbour.org',
    values.map((Address, index) => ({ HostName: `v${index}`, RecordType: 'TXT', Address })),
  )

  const rows = await registrar.getHosts('quietharbour.org')
  expect(rows.map((row) => row[2])).toEqual(values)
})

test('quotes and line ends in attributes are written as references', async () => {
  await using registrar = await start()
  const hosts = [{ name: '@', type: 'TXT', address: '"\r\n\t<&>é' }]
  await registrar.sandbox.setZone('quietharbour.org', { hosts })

  const answer = await registrar.send({
    Command: 'namecheap.domains.dns.getHosts',
    SLD: 'quietharbour',
    TLD: 'org',
  })

  expect(answer.body).toContain('Address="&quot;&#xD;&#xA;&#x9;&lt;&amp;&gt;é"')
})
