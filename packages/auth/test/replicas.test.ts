import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { hashPassword } from '../src/login/password.ts'
import { SqlUsers } from '../src/users/sql-users.ts'
import { makeDatabase, schema } from './support/database.ts'
import { type start, startReplica, weak } from './support/start.ts'

const shared = await makeDatabase()
afterAll(() => shared[Symbol.asyncDispose]())

type Replica = Awaited<ReturnType<typeof start>>
let one: Replica
let other: Replica

beforeAll(async () => {
  one = await startReplica(shared.database)
  other = await startReplica(shared.database)
})

afterAll(async () => {
  await one[Symbol.asyncDispose]()
  await other[Symbol.asyncDispose]()
})

beforeEach(async () => {
  await new SqlUsers(shared.database).update(() => one.people)
  await shared.database.query(`truncate ${schema}.login_attempts`)
})

test('a session of one replica is valid at the other', async () => {
  const token = await one.tokenOf('vera')

  expect((await other.call('/view', { token })).status).toBe(200)
})

test('a new password ends the sessions at every replica at once', async () => {
  const token = await one.tokenOf('vera')
  expect((await other.call('/view', { token })).status).toBe(200)
  const password = await hashPassword('other words', weak)

  await new SqlUsers(shared.database).update((users) =>
    users.map((user) => (user.username === 'vera' ? { ...user, password } : user)),
  )

  expect((await one.call('/view', { token })).status).toBe(401)
  expect((await other.call('/view', { token })).status).toBe(401)
})

test('a changed role counts at every replica at once', async () => {
  const token = await one.tokenOf('vera')
  expect((await other.call('/edit', { token, method: 'PUT' })).status).toBe(403)

  await new SqlUsers(shared.database).update((users) =>
    users.map((user) => (user.username === 'vera' ? { ...user, role: 'editor' } : user)),
  )

  expect((await other.call('/edit', { token, method: 'PUT' })).status).toBe(200)
})

test('an API token of one replica is valid at the other until it is revoked there', async () => {
  const { id, token } = await one.createToken('vera')
  expect((await other.call('/view', { token })).status).toBe(200)

  const session = await other.tokenOf('vera')
  await other.call(`/api/tokens/${id}`, { method: 'DELETE', token: session })

  expect((await one.call('/view', { token })).status).toBe(401)
  expect((await other.call('/view', { token })).status).toBe(401)
})

test('wrong logins at all replicas count together', async () => {
  for (let count = 0; count < 5; count += 1) {
    expect((await one.login('vera', 'wrong')).status).toBe(401)
    expect((await other.login('vera', 'wrong')).status).toBe(401)
  }

  const refused = await Promise.all([one.login('vera'), other.login('vera')])

  expect(refused.map(({ code }) => code)).toEqual(['too_many_requests', 'too_many_requests'])
  expect((await other.login('edda')).status).toBe(200)
})

test('concurrent wrong logins at two replicas cannot pass the limit', async () => {
  const attempts = Array.from({ length: 24 }, (_, index) => (index % 2 ? one : other).login('adam', 'wrong'))

  const statuses = (await Promise.all(attempts)).map(({ status }) => status)

  expect(statuses.filter((status) => status === 401)).toHaveLength(10)
  expect(statuses.filter((status) => status === 429)).toHaveLength(14)
})
