import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { start } from '../support/start.ts'

const UsersFile = z.object({ users: z.array(z.looseObject({ username: z.string() })) })

test('a user removed by an edit with a fault is out at once, and /health says that the file has a fault', async () => {
  await using service = await start()
  const file = join(service.dataDir, 'users.json')
  const { users } = UsersFile.parse(JSON.parse(readFileSync(file, 'utf8')))
  const record = '/api/domains/example.com/dns/hosts/A'
  const write = (user: 'editor' | 'limited' | 'admin', name: string) =>
    service.call('POST', record, { user, body: { name, address: '192.0.2.9' } })
  const health = async () => (await service.call('GET', '/health')).body
  expect([(await write('editor', 'a')).status, (await write('limited', 'b')).status]).toEqual([201, 201])

  const edited = users
    .filter(({ username }) => username !== 'editor')
    .map((user) => (user.username === 'limited' ? { ...user, note: 'on leave' } : user))
  writeFileSync(file, JSON.stringify({ users: edited }))
  const [removed, faulty, valid] = [await write('editor', 'c'), await write('limited', 'd'), await write('admin', 'e')]
  const during = await health()
  writeFileSync(file, JSON.stringify({ users }))

  expect([removed.status, faulty.status, valid.status]).toEqual([401, 401, 201])
  expect(during).toMatchObject({ status: 'degraded', checks: { users: { status: 'degraded' } } })
  expect(await health()).toMatchObject({ status: 'ok', checks: { users: { status: 'ok' } } })
  expect((await write('editor', 'f')).status).toBe(201)
})
