import { randomBytes, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { StoredToken, TokenStore } from '../../src/api-tokens/stored-token.ts'
import { TokenFile } from '../../src/api-tokens/token-file.ts'
import { PostgresTokens } from '../../src/postgres/postgres-tokens.ts'
import { makeDatabase } from '../support/database.ts'
import { makeFolder } from '../support/start.ts'

interface Backend extends AsyncDisposable {
  openStore: () => TokenStore
}

const fail = (error: unknown) => {
  throw error
}

const backends: [string, () => Promise<Backend>][] = [
  [
    'a file',
    async () => {
      const folder = await makeFolder()
      return { openStore: () => new TokenFile(join(folder.path, 'tokens.json'), fail), ...folder }
    },
  ],
  [
    'PostgreSQL',
    async () => {
      const { database, ...rest } = await makeDatabase()
      return { openStore: () => new PostgresTokens(database, fail), ...rest }
    },
  ],
]

const tokenOf = (owner: string, more: Partial<StoredToken> = {}): StoredToken => ({
  id: randomUUID(),
  name: 'a token',
  digest: randomBytes(32).toString('hex'),
  hint: 'x7Qa',
  owner,
  created_at: new Date().toISOString(),
  expires_at: null,
  last_used_at: null,
  ...more,
})

describe.each(backends)('API tokens in %s', async (_name, open) => {
  const { openStore, ...backend } = await open()
  afterAll(() => backend[Symbol.asyncDispose]())

  test('are found by their digest, as they were added', async () => {
    const token = tokenOf('adam', {
      owner_id: '1',
      role: 'editor',
      domains: ['example.com'],
      records: [{ name: '_acme-challenge', types: ['TXT'] }],
      networks: ['192.0.2.0/24'],
      expires_at: '2099-01-15T09:30:00.000Z',
    })

    await openStore().add(token)

    expect(await openStore().find(token.digest)).toEqual(token)
    expect(await openStore().find(randomBytes(32).toString('hex'))).toBeUndefined()
  })

  test('are listed by owner, oldest first', async () => {
    const [first, second, other] = [tokenOf('lea'), tokenOf('lea'), tokenOf('leo')]
    const store = openStore()
    for (const token of [first, second, other]) await store.add(token)

    expect(await store.list('lea')).toEqual([first, second])
    expect(await store.list()).toEqual(expect.arrayContaining([first, second, other]))
  })

  test('a removed one is not found at the next look-up, anywhere', async () => {
    const token = tokenOf('adam')
    const [here, there] = [openStore(), openStore()]
    await here.add(token)
    await there.find(token.digest)

    expect(await here.remove(token.id, 'vera')).toBe(false)
    expect(await here.remove('not an id')).toBe(false)
    expect(await here.remove(token.id, 'adam')).toBe(true)
    expect(await here.remove(token.id)).toBe(false)

    expect(await there.find(token.digest)).toBeUndefined()
  })

  test('a use is recorded', async () => {
    const token = tokenOf('adam')
    const store = openStore()
    await store.add(token)

    store.touch(token.id, new Date('2027-01-15T10:30:00.000Z'))
    await store.close()

    const found = await openStore().find(token.digest)
    expect(found?.last_used_at).toBe('2027-01-15T10:30:00.000Z')
  })

  test('one that expired more than 30 days ago is removed when another is added', async () => {
    const longAgo = tokenOf('olaf', { expires_at: '2020-01-15T09:30:00.000Z' })
    const token = tokenOf('olaf')
    const store = openStore()
    await store.add(longAgo)

    await store.add(token)

    expect(await store.list('olaf')).toEqual([token])
  })
})
