import { expect, test } from 'vitest'
import { effectOf } from '../../src/ledger/ledger.ts'
import { evaluateWrite } from '../../src/zones/batch/evaluate-write.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { openLedger, requestBy, row, zoneOf } from '../support/ledger.ts'
import { type Call, type Service, start, www } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'
const rrset = (name: string) => `/api/domains/example.com/dns/rrsets/${name}/A`
const setHosts = 'namecheap.domains.dns.setHosts'
const domains = [
  { name: 'example.com', hosts: [www] },
  { name: 'example.org', hosts: [] },
]

const add = (service: Service, name: string, options: Call = {}, query = '') =>
  service.call('POST', `${hosts}/A${query}`, { body: { name, address: '192.0.2.9' }, ...options })

/** Proposes a record, by default as the user whose writes are proposals. */
async function propose(service: Service, name = 'new', user = 'proposer') {
  const answer = await add(service, name, { user }, user === 'proposer' ? '' : '?propose=true')
  return { answer, at: answer.headers.get('location') ?? '' }
}

const approve = (service: Service, at: string, user = 'admin', headers = {}) =>
  service.call('POST', `${at}/approve`, { user, headers })

const reject = (service: Service, at: string, options: Call = {}) => service.call('POST', `${at}/reject`, options)

const read = async (service: Service, at: string) => (await service.call('GET', at)).body

const ended = (service: Service, at: string) =>
  expect.poll(async () => (await read(service, at)).status).not.toMatch(/^(proposed|queued|sending)$/)

const sent = (service: Service) => service.commands().filter((each) => each === 'dns.sethosts')

test('a proposal shows its diff and sends nothing; another person approves it, and both are named', async () => {
  await using service = await start({ domains })
  const zone = await service.call('GET', hosts)

  const { answer, at } = await propose(service)
  const listed = await service.call('GET', '/api/changes?status=proposed', { user: 'viewer' })
  expect(sent(service)).toEqual([])
  const approved = await approve(service, at, 'editor')
  await ended(service, at)
  const history = (await service.call('GET', '/api/domains/example.com/dns/history')).body.history

  expect(answer.status).toBe(202)
  expect(answer.body).toMatchObject({
    status: 'proposed',
    by: 'proposer',
    changes: { added: [{ name: 'new', type: 'A' }], removed: [], kept: 1 },
    etag: zone.headers.get('etag'),
  })
  expect(listed.body.change_list).toMatchObject([{ status: 'proposed', by: 'proposer' }])
  expect([approved.status, approved.body.status]).toEqual([202, 'queued'])
  expect(approved.headers.get('location')).toBe(at)
  expect(await read(service, at)).toMatchObject({
    status: 'confirmed',
    by: 'proposer',
    approved_by: 'editor',
  })
  expect(history).toMatchObject([{ by: 'proposer', approved_by: 'editor' }])
  expect(service.live()).toHaveLength(2)
})

test.each([
  ['PUT', hosts, { hosts: [] }],
  ['PATCH', hosts, { add: [{ name: 'new', type: 'A', address: '192.0.2.9' }] }],
  ['PUT', rrset('new'), { values: ['192.0.2.9'] }],
  ['DELETE', rrset('www'), undefined],
  ['PATCH', `${hosts}/WWW`, { ttl: 600 }],
  ['DELETE', `${hosts}/WWW`, undefined],
  ['POST', '/api/domains/example.com/dns/history/1/revert', undefined],
  ['POST', '/api/domains/example.com/dns/history/1/restore', undefined],
])('%s %s is proposed too', async (method, template, body) => {
  await using service = await start({ domains })
  await service.call('POST', `${hosts}/A`, { body: { name: 'before', address: '192.0.2.8' } })
  const zone = (await service.call('GET', hosts)).body.hosts ?? []
  const path = template.replace('WWW', zone.find(({ name }) => name === 'www')?.id ?? '')

  const asked = await service.call(method, `${path}?propose=true`, { body })
  const only = await service.call(method, path, { body, user: 'proposer' })
  const later = await service.call(method, path, {
    body,
    user: 'proposer',
    headers: { prefer: 'respond-async' },
  })

  expect([asked, only, later].map(({ status }) => status)).toEqual([202, 202, 202])
  expect([asked, only, later].map(({ body }) => body.status)).toEqual(Array(3).fill('proposed'))
  expect(later.headers.get('preference-applied')).toBeNull()
  expect(sent(service)).toHaveLength(1)
})

test('the history has an approved change where it was sent, not where it was proposed', async () => {
  await using service = await start({ domains })
  const history = (query: string) => service.call('GET', `/api/domains/example.com/dns/history${query}`)
  const { at } = await propose(service)
  await add(service, 'between')

  await approve(service, at)
  await ended(service, at)
  const all = await history('')
  const first = await history('?page_size=1')
  const second = await history(`?page_size=1&after=${first.body.next}`)

  const names = (response: typeof all) => response.body.history?.map(({ changes }) => changes?.added[0]?.name)
  expect(names(all)).toEqual(['new', 'between'])
  expect([first, second].map(names)).toEqual([['new'], ['between']])
  expect([all.body.next, second.body.next]).toEqual([null, null])
})

test('a zone file is proposed too', async () => {
  await using service = await start({ domains })
  const options = { text: 'www IN A 192.0.2.3\n', headers: { 'content-type': 'text/dns' } }

  const path = '/api/domains/example.com/dns/zonefile'
  const answer = await service.call('PUT', path, { ...options, user: 'proposer' })

  expect([answer.status, answer.body.status, sent(service)]).toEqual([202, 'proposed', []])
})

test('a write that changes nothing is answered as without propose, and is no proposal', async () => {
  await using service = await start({ domains })

  const body = { values: [www.address] }
  const asked = await service.call('PUT', `${rrset('www')}?propose=true`, { body })
  const only = await service.call('PUT', hosts, { body: { hosts: [www] }, user: 'proposer' })
  const removed = await service.call('DELETE', rrset('gone'), { user: 'proposer' })

  expect([asked, only, removed].map(({ status }) => status)).toEqual([200, 200, 204])
  expect(only.body.changes).toEqual({ added: [], removed: [], kept: 1 })
  expect((await service.call('GET', '/api/changes')).body.change_list).toEqual([])
})

test('a proposal beside dry_run is a dry run, and faults are found as always', async () => {
  await using service = await start({ domains })

  const dry = await add(service, 'new', {}, '?propose=true&dry_run=true')
  const bad = await add(service, '-', {}, '?propose=true')
  const stale = await add(service, 'new', { headers: { 'if-match': '"x"' } }, '?propose=true')
  const viewer = await add(service, 'new', { user: 'viewer' }, '?propose=true')

  expect([dry.status, dry.body.dry_run]).toEqual([201, true])
  expect([bad, stale, viewer].map(({ status }) => status)).toEqual([400, 412, 403])
  expect((await service.call('GET', '/api/changes')).body.change_list).toEqual([])
})

test('authors, tokens and those who may only propose approve and reject nothing', async () => {
  await using service = await start({ domains })
  const { at } = await propose(service, 'new', 'editor')
  const token = async (user: string) => {
    const made = await service.call('POST', '/api/tokens', {
      user,
      body: { name: 't', role: 'editor' },
    })
    return { authorization: `Bearer ${made.body.token}` }
  }

  const own = await approve(service, at, 'editor')
  const ownToken = await approve(service, at, 'viewer', await token('editor'))
  const anyToken = await approve(service, at, 'viewer', await token('admin'))
  const proposer = await approve(service, at, 'proposer')
  const rejected = await reject(service, at, { user: 'editor' })
  const cancelled = await service.call('DELETE', at)

  expect([own, ownToken, anyToken, rejected].map(({ status, body }) => [status, body.code])).toEqual(
    Array(4).fill([403, 'own_change']),
  )
  expect([proposer, cancelled].map(({ status, body }) => [status, body.code])).toEqual(
    Array(2).fill([403, 'forbidden']),
  )
  expect((await approve(service, at, 'viewer')).status).toBe(403)
  const elsewhere = hosts.replace('.com', '.org')
  const other = await service.call('PUT', `${elsewhere}?propose=true`, { body: { hosts: [www] } })
  const unseen = await approve(service, other.headers.get('location') ?? '', 'limited')
  expect([unseen.status, unseen.body.code]).toEqual([404, 'change_not_found'])
  expect((await read(service, at)).status).toBe('proposed')
})

test('a proposal whose author may not write any more is not approved', async () => {
  await using service = await start({ domains })
  const { body: made } = await service.call('POST', '/api/tokens', {
    user: 'editor',
    body: { name: 't', role: 'editor' },
  })
  const byToken = await add(service, 'new', { headers: { authorization: `Bearer ${made.token}` } }, '?propose=true')
  const byUser = await propose(service)
  await service.call('DELETE', `/api/tokens/${made.id}`, { user: 'editor' })
  await service.call('PATCH', '/api/users/proposer', { body: { role: 'viewer' } })

  const proposals = [byToken.headers.get('location') ?? '', byUser.at]
  const answers = await Promise.all(proposals.map((at) => approve(service, at)))

  expect(answers.map(({ status, body }) => [status, body.code])).toEqual(Array(2).fill([403, 'forbidden']))
  expect(await Promise.all(proposals.map(async (at) => (await read(service, at)).status))).toEqual(
    Array(2).fill('proposed'),
  )
})

test('a token of a proposer only proposes, and so does a token that is limited to that', async () => {
  await using service = await start({ domains })
  const addBy = async (user: string, writes?: string) => {
    const body = { name: `t ${writes}`, role: 'editor', writes }
    const { token } = (await service.call('POST', '/api/tokens', { user, body })).body
    return (await add(service, 'new', { headers: { authorization: `Bearer ${token}` } })).status
  }

  expect([await addBy('proposer'), await addBy('editor', 'propose')]).toEqual([202, 202])
  expect(await addBy('editor')).toBe(201)
})

test('protocols that cannot wait refuse a proposer in their own words', async () => {
  await using service = await start({ domains })
  const update = '/nic/update?hostname=www.example.com&myip=192.0.2.77'

  const router = await service.call('GET', update, { user: 'proposer' })
  const acme = await service.call('POST', '/integrations/acme/present', {
    user: 'proposer',
    body: { fqdn: '_acme-challenge.example.com.', value: 'x' },
  })

  expect(router.text).toBe('!yours')
  expect([acme.status, acme.body.code]).toEqual([403, 'forbidden'])
  expect(sent(service)).toEqual([])
})

test('other changes of the zone do not matter, but a proposal that would do something else is outdated', async () => {
  await using service = await start({ domains })
  const body = { values: ['192.0.2.50'] }
  const headers = { 'if-match': (await service.call('GET', hosts)).headers.get('etag') ?? '' }
  const put = await service.call('PUT', rrset('www'), { user: 'proposer', body, headers })
  const at = put.headers.get('location') ?? ''
  await add(service, 'unrelated')
  await service.call('PUT', rrset('www'), { body: { values: ['192.0.2.2'] } })

  const outdated = await approve(service, at)
  const shown = await read(service, at)
  const approved = await approve(service, at)
  await ended(service, at)

  const diff = (address: string) => ({
    added: [{ address: '192.0.2.50' }],
    removed: [{ address }],
  })
  expect([outdated.status, outdated.body.code]).toEqual([409, 'change_outdated'])
  expect(outdated.body).toMatchObject({
    proposed: diff('192.0.2.1'),
    changes: diff('192.0.2.2'),
  })
  expect(shown).toMatchObject({ status: 'proposed', changes: diff('192.0.2.2') })
  expect([approved.status, (await read(service, at)).status]).toEqual([202, 'confirmed'])
})

test('a change of the email type is outdated once the type is another', async () => {
  await using service = await start({ domains: [{ name: 'example.com', hosts: [www], emailType: 'FWD' }] })
  const setType = (type: string, options: Call = {}) =>
    service.call('PATCH', hosts, { body: { email_type: type }, ...options })
  const proposed = await setType('NONE', { user: 'proposer' })
  const at = proposed.headers.get('location') ?? ''
  await setType('OX')

  const outdated = await approve(service, at)
  const approved = await approve(service, at)
  await ended(service, at)

  expect([outdated.status, outdated.body.code]).toEqual([409, 'change_outdated'])
  expect(JSON.parse(outdated.text)).toMatchObject({
    proposed: { email_type_before: 'FWD', email_type: 'NONE' },
    changes: { email_type_before: 'OX', email_type: 'NONE' },
  })
  expect([approved.status, (await read(service, at)).status]).toEqual([202, 'confirmed'])
})

test('an approval that an earlier version has queued counts, though it does not name the email type before', () => {
  const before = { ...zoneOf(row('www')), emailType: 'FWD' }
  const request = requestBy('proposer', { edit: { kind: 'batch', emailType: 'OX' } })
  const approve = (type: object) =>
    evaluateWrite({ ...request, approved: { added: [], removed: [], emailType: 'OX', ...type } }, before)

  expect(approve({}).emailType).toBe('OX')
  expect(() => approve({ emailTypeBefore: 'NONE' })).toThrow('changed since')
})

test('what another change makes impossible is outdated, and can be rejected with a reason', async () => {
  await using service = await start({ domains })
  const { at } = await propose(service)
  await add(service, 'new')

  const outdated = await approve(service, at)
  const invalid = await reject(service, at, { body: { reason: 'it is\0there' } })
  const rejected = await reject(service, at, { body: { reason: 'it is there already' } })
  const again = await reject(service, at)

  expect([outdated.status, outdated.body.code]).toEqual([409, 'change_outdated'])
  expect([invalid.status, invalid.body.errors?.[0]?.path]).toEqual([400, '/reason'])
  expect([rejected.status, rejected.body.status]).toEqual([200, 'rejected'])
  expect(rejected.body.reason).toBe('it is there already')
  expect([again.status, again.body.code]).toEqual([409, 'change_closed'])
})

test('what changes between approval and sending ends the change as refused', async () => {
  await using service = await start({ domains, env: { REGISTRAR_TIMEOUT_MS: '120000' } })
  const body = { values: ['192.0.2.50'] }
  const { headers } = await service.call('PUT', rrset('www'), { user: 'proposer', body })
  const at = headers.get('location') ?? ''
  // Approved while another change of the same records is on its way.
  service.sandbox.fault({ kind: 'slow', ms: 600_000, command: setHosts })
  const other = service.call('PUT', rrset('www'), { body: { values: ['192.0.2.3'] } })
  await expect.poll(() => sent(service).length).toBe(1)
  await approve(service, at)
  service.sandbox.clearFaults()
  await other
  await ended(service, at)

  expect(await read(service, at)).toMatchObject({
    status: 'refused',
    approved_by: 'admin',
    problem: { code: 'change_outdated' },
  })
})

test('of two who approve at once one wins', async () => {
  await using service = await start({ domains })
  const { at } = await propose(service)

  const answers = await Promise.all([approve(service, at), approve(service, at, 'editor')])
  await ended(service, at)

  expect(answers.map(({ status, body }) => [status, body.code]).sort()).toEqual([
    [202, undefined],
    [409, 'change_closed'],
  ])
  expect(sent(service)).toHaveLength(1)
})

test('who may only propose cancels no change of others', async () => {
  await using service = await start({ domains })
  const other = await add(service, 'direct', { headers: { prefer: 'respond-async' } })
  const { at } = await propose(service)
  await approve(service, at)
  await ended(service, at)

  const ofOther = await service.call('DELETE', `/api/changes/${other.body.id}`, { user: 'proposer' })
  const own = await service.call('DELETE', at, { user: 'proposer' })

  expect([ofOther.status, ofOther.body.code]).toEqual([403, 'forbidden'])
  expect([own.status, own.body.code]).toEqual([409, 'change_not_queued'])
})

test('an admin who may only propose decides nothing about held changes', async () => {
  await using service = await start()
  const body = { name: 'p', role: 'admin', writes: 'propose' }
  const token = await service.call('POST', '/api/tokens', { body })
  const headers = { authorization: `Bearer ${token.body.token}` }

  const released = await service.call('POST', '/api/changes/held/release', { headers })
  const cancelled = await service.call('DELETE', '/api/changes/held', { headers })

  expect([released.status, cancelled.status]).toEqual([403, 403])
})

test('the author cancels a proposal, and the same key then proposes again', async () => {
  await using service = await start({ domains })
  const options = { user: 'proposer', headers: { 'idempotency-key': 'k' } }
  const first = await add(service, 'new', options)
  const same = await add(service, 'new', options)

  const cancelled = await service.call('DELETE', `/api/changes/${first.body.id}`, options)
  const later = await add(service, 'new', options)

  expect(same.body.id).toBe(first.body.id)
  expect([cancelled.status, cancelled.body.status]).toEqual([200, 'cancelled'])
  expect(later.body.id).not.toBe(first.body.id)
  expect(sent(service)).toEqual([])
})

test('a repeat with the same key is the same proposal, though its If-Match is outdated by now', async () => {
  await using service = await start({ domains })
  const { headers } = await service.call('GET', '/api/domains/example.com/dns/hosts')
  const options = { user: 'proposer', headers: { 'idempotency-key': 'k', 'if-match': headers.get('etag') ?? '' } }
  const first = await add(service, 'new', options)
  await add(service, 'other')

  const again = await add(service, 'new', options)

  expect([first.status, again.status, again.body.id]).toEqual([202, 202, first.body.id])
})

test('a proposal that has waited for 14 days is not approved, though nothing has cancelled it yet', async () => {
  let now = Date.now()
  const { ledger } = openLedger(() => now)
  const { id } = await ledger.accept(requestBy('proposer'), effectOf(zoneOf(row('a')), zoneOf(row('b'))))

  now += 14 * 86_400_000

  await expect(ledger.reject(id, undefined)).rejects.toMatchObject({ code: 'change_closed' })
})

test('a proposal that nobody approves in 14 days is cancelled', async () => {
  const clock = new FakeClock()
  await using service = await start({ domains, clock })
  const { at } = await propose(service)

  await clock.leap(14 * 86_400_000 - 7_200_000)
  await clock.leap(3_600_000)
  expect((await read(service, at)).status).toBe('proposed')
  await clock.leap(2 * 3_600_000)

  await expect.poll(() => read(service, at)).toMatchObject({ status: 'cancelled', reason: 'expired' })
  expect((await approve(service, at)).body.code).toBe('change_closed')
})
