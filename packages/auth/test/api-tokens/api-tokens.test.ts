import { type Sql, sql } from '@domains-and-files/persistence'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { ApiTokens, type NewToken } from '../../src/api-tokens/api-tokens.ts'
import { openAuthFile } from '../../src/auth-database.ts'
import { type Caller, callerOfUser } from '../../src/rights.ts'
import { makeDatabase, tokensTable } from '../support/database.ts'
import { makeFolder, makeUser } from '../support/start.ts'

interface Backend extends AsyncDisposable {
  /** As another process does. */
  open: () => Sql
}

const backends: [string, () => Promise<Backend>][] = [
  [
    'a file',
    async () => {
      const folder = await makeFolder()
      const opened: ReturnType<typeof openAuthFile>[] = []
      const open = () => {
        const database = openAuthFile(folder.path)
        opened.push(database)
        return database
      }
      const dispose = async () => {
        for (const database of opened) await database.close()
        await folder[Symbol.asyncDispose]()
      }
      return { open, [Symbol.asyncDispose]: dispose }
    },
  ],
  [
    'PostgreSQL',
    async () => {
      const { database, ...rest } = await makeDatabase()
      return { open: () => database, ...rest }
    },
  ],
]

const address = '192.0.2.1'
const day = 86_400_000
const edda = await makeUser('edda', { role: 'editor', id: '1', domains: ['example.com'] })
const adam = await makeUser('adam', { role: 'admin', id: '2' })

describe.each(backends)('API tokens in %s', async (_name, openBackend) => {
  const { open, ...backend } = await openBackend()
  afterAll(() => backend[Symbol.asyncDispose]())
  const database = open()
  beforeEach(() => database.run(sql`delete from ${tokensTable}`))

  const begin = (on = database) => {
    const clock = { ms: Date.parse('2026-11-20T19:20:00.500Z') }
    const users = new Map([edda, adam].map((user) => [user.username, user]))
    const reports: unknown[] = []
    const tokens = new ApiTokens({
      database: on,
      find: async (username) => users.get(username),
      prefix: 'ds_',
      now: () => clock.ms,
      report: (error) => reports.push(error),
    })
    const create = (request: Partial<NewToken> = {}, owner: Caller = callerOfUser(edda)) =>
      tokens.create(owner, { name: 'ci', ...request })
    return { tokens, create, clock, users, reports }
  }

  test('a token identifies its owner, with the limits that it was created with', async () => {
    const { tokens, create } = begin()
    const records = [{ name: '_acme-challenge', types: ['TXT'] }]

    const { text, token } = await create({ records, networks: ['192.0.2.0/24'] })

    expect(await tokens.verify(text, address)).toEqual({
      id: `token:${token.id}`,
      username: 'edda',
      role: 'editor',
      domains: ['example.com'],
      records,
      readsAll: false,
      expiresAt: new Date('2027-02-18T19:20:00.500Z'),
      token: { id: token.id, name: 'ci', owner: 'user:edda 1' },
    })
    await expect(tokens.verify(text, '198.51.100.1')).rejects.toMatchObject({
      code: 'unauthorized',
    })
  })

  test('a token without networks is valid from a link-local address with a zone', async () => {
    const { tokens, create } = begin()
    const { text, token } = await create()

    expect(await tokens.verify(text, 'fe80::1%eth0')).toMatchObject({ id: `token:${token.id}` })
  })

  test('only the digest of a token is stored', async () => {
    const { text } = await begin().create()

    const rows = await database.all(sql`select * from ${tokensTable}`)

    expect(JSON.stringify(rows)).not.toContain(text.slice(3, -6))
  })

  test('a token whose digest begins like that of another is not valid', async () => {
    const { tokens, create } = begin()
    const { text } = await create()

    await database.run(sql`update ${tokensTable} set definition = replace(definition, '"digest":"', '"digest":"0')`)

    await expect(tokens.verify(text, address)).rejects.toMatchObject({ code: 'unauthorized' })
  })

  test('tokens are listed by owner, oldest first', async () => {
    const { tokens, create, clock } = begin()
    for (const name of ['b', 'a']) {
      await create({ name })
      clock.ms += 1
    }
    await create({}, callerOfUser(adam))

    const [own, all] = [await tokens.list('edda'), await tokens.list()]

    expect(own.map(({ name }) => name)).toEqual(['b', 'a'])
    expect(all.map(({ owner }) => owner)).toEqual(['edda', 'edda', 'adam'])
  })

  test('a revoked token is not valid at the next look-up, anywhere', async () => {
    const { tokens, create } = begin()
    const elsewhere = begin(open()).tokens
    const { text, token } = await create()
    expect(await elsewhere.verify(text, address)).toMatchObject({ username: 'edda' })

    await expect(tokens.remove(token.id, () => false)).rejects.toThrow('No API token')
    await tokens.remove(token.id)

    await expect(elsewhere.verify(text, address)).rejects.toMatchObject({ code: 'unauthorized' })
    await expect(tokens.remove(token.id)).rejects.toThrow('No API token')
    await expect(tokens.remove('not an id')).rejects.toThrow('No API token')
  })

  test('a use is recorded', async () => {
    const { tokens, create } = begin()
    const { text } = await create()
    const elsewhere = begin(open()).tokens

    await tokens.verify(text, address)

    await expect.poll(async () => (await elsewhere.list())[0]?.last_used_at).toBe('2026-11-20T19:20:00.500Z')
  })

  test('a name is taken once for an owner, and freed by the end of its token', async () => {
    const { tokens, create, clock, users } = begin()
    const { token } = await create({ expires_in: 60 })
    await create({}, callerOfUser(adam))

    const both = await Promise.allSettled([create(), create({ name: 'new' }), create()])
    const codes = both.map((each) => each.status === 'rejected' && each.reason.code)
    clock.ms += 60_000
    const renewed = await create()
    await tokens.remove(renewed.token.id)
    const again = await create()
    users.set('edda', { ...edda, id: 'another' })
    const ofAnother = await create()

    expect(codes).toEqual(['token_exists', false, 'token_exists'])
    const ids = (await tokens.list('edda')).map(({ id }) => id)
    expect(ids).toContain(ofAnother.token.id)
    for (const gone of [token, renewed.token, again.token]) expect(ids).not.toContain(gone.id)
  })

  test('a new user sees no tokens of a removed user of its name, and takes over their names', async () => {
    const { tokens, create, users } = begin()
    await create({ name: 'old' })
    await create({ name: 'older' })

    users.delete('edda')
    const ofNobody = await tokens.list('edda')
    users.set('edda', { ...edda, id: 'another' })
    const before = await tokens.list('edda')
    const { token } = await create({ name: 'old' })

    expect([ofNobody, before]).toEqual([[], []])
    expect(await tokens.list('edda')).toEqual([token])
    expect((await tokens.list()).map(({ name }) => name).sort()).toEqual(['old', 'older'])
  })

  test('of concurrent creations under one name one succeeds', async () => {
    const { create } = begin()

    const results = await Promise.allSettled(Array.from({ length: 5 }, () => create()))

    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  test('a token that expired more than 30 days ago is removed when another is created', async () => {
    const { tokens, create, clock } = begin()
    await create({ name: 'old', expires_in: 60 })

    clock.ms += 30 * day
    await create({ name: 'first' })
    const before = await tokens.list()
    clock.ms += 61_000
    await create({ name: 'second' })

    expect(before.map(({ name }) => name)).toEqual(['old', 'first'])
    expect((await tokens.list()).map(({ name }) => name)).toEqual(['first', 'second'])
  })

  test('a stored caller has the rights of its token now, until that is revoked', async () => {
    const { tokens, create, users } = begin()
    const { token } = await create({ role: 'editor' })

    const before = await tokens.findCaller(token.id)
    users.set('edda', { ...edda, role: 'viewer', domains: undefined })
    const demoted = await tokens.findCaller(token.id)
    users.set('edda', { ...edda, id: 'another' })
    const ofAnother = await tokens.findCaller(token.id)
    users.set('edda', edda)
    await tokens.remove(token.id)

    expect(before).toMatchObject({ id: `token:${token.id}`, role: 'editor', username: 'edda' })
    expect(demoted).toMatchObject({ role: 'viewer' })
    expect(ofAnother).toBeUndefined()
    expect(await tokens.findCaller(token.id)).toBeUndefined()
  })

  test('a token can do no more than its owner can now', async () => {
    const { tokens, create, users } = begin()
    const { text } = await create({ role: 'editor', domains: ['example.com'] })

    users.set('edda', { ...edda, domains: ['example.org'], writes: 'propose' })

    expect(await tokens.verify(text, address)).toMatchObject({ role: 'editor', domains: [], writes: 'propose' })
  })

  test('a token of an earlier version, without its expiry in the definition, expires', async () => {
    const { tokens, create, clock } = begin()
    const { text, token } = await create({ expires_in: 60 })
    const without = JSON.stringify({ expires_at: token.expires_at }).slice(1, -1)
    await database.run(sql`update ${tokensTable} set definition = replace(definition, ${`${without},`}, '')`)

    expect((await tokens.list())[0]?.expires_at).toBe(token.expires_at)
    clock.ms += 60_000
    await expect(tokens.verify(text, address)).rejects.toMatchObject({ code: 'token_expired' })
    expect(await tokens.identify(text, address)).toMatchObject({ expiresAt: new Date(token.expires_at ?? '') })
    expect(await tokens.findCaller(token.id)).toBeUndefined()
  })

  test('a stored caller whose token has expired has no rights', async () => {
    const { tokens, create, clock } = begin()
    const { token } = await create({ expires_in: 60 })

    clock.ms += 60_000

    expect(await tokens.findCaller(token.id)).toBeUndefined()
  })
})
