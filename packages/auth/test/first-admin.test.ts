import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { authSettings } from '../src/index.ts'
import { verifyPassword } from '../src/login/password.ts'
import { ensureFirstAdmin } from '../src/open-auth.ts'
import { FileUsers } from '../src/users/file-users.ts'
import { makeFolder, makeUser, readUsers, writeUsers } from './support/start.ts'

const usersIn = (file: string) => new FileUsers(file, () => undefined)

async function begin() {
  const folder = await makeFolder()
  const said: string[] = []
  const say = (message: string) => void said.push(message)
  const file = join(folder.path, 'users.json')
  return {
    file,
    dataDir: folder.path,
    said,
    say,
    [Symbol.asyncDispose]: folder[Symbol.asyncDispose],
  }
}

test.each([true, false])('the admin of the settings is created (production: %s)', async (production) => {
  await using place = await begin()
  const { file, said, say } = place

  await ensureFirstAdmin(
    usersIn(file),
    {
      adminUsername: 'root',
      adminPassword: 'long enough',
      production,
    },
    say,
  )

  const [admin] = readUsers(file)
  expect(admin).toMatchObject({ username: 'root', role: 'admin' })
  expect(await verifyPassword(admin?.password ?? '', 'long enough')).toBe(true)
  expect(said).toEqual([])
})

test('without settings an admin with a random password is created, and printed once', async () => {
  await using place = await begin()
  const { file, said, say } = place

  await ensureFirstAdmin(usersIn(file), { production: false }, say)
  await ensureFirstAdmin(usersIn(file), { production: false }, say)

  const [, password = ''] = /^Created the user admin with the password ([\w-]{20}) /.exec(said[0] ?? '') ?? []
  expect(said).toHaveLength(1)
  expect(await verifyPassword(readUsers(file)[0]?.password ?? '', password)).toBe(true)
})

test('production refuses to start rather than invent an admin', async () => {
  await using place = await begin()
  const { file } = place

  const started = ensureFirstAdmin(usersIn(file), { production: true })

  await expect(started).rejects.toThrow(/^There are no users in .*users\.json: set ADMIN_USERNAME/)
})

test('a users file without users counts as none', async () => {
  await using place = await begin()
  const { file } = place
  await writeUsers(file, [])

  await expect(ensureFirstAdmin(usersIn(file), { production: true })).rejects.toThrow('There are no users')
})

test.each([{ adminUsername: 'root' }, { adminPassword: 'long enough' }])(
  'one of the two settings alone is refused: %j',
  async (half) => {
    await using place = await begin()
    const { file } = place

    const started = ensureFirstAdmin(usersIn(file), { ...half, production: false })

    await expect(started).rejects.toThrow('set both ADMIN_USERNAME and ADMIN_PASSWORD, or neither')
  },
)

test('the settings change nothing once there are users', async () => {
  await using place = await begin()
  const { file } = place
  const vera = await makeUser('vera')
  await writeUsers(file, [vera])

  await ensureFirstAdmin(usersIn(file), {
    adminUsername: 'root',
    adminPassword: 'long enough',
    production: true,
  })

  expect(readUsers(file)).toEqual([vera])
})

test('an invalid users file does not count as none', async () => {
  await using place = await begin()
  const { file } = place
  await writeFile(file, '')

  await expect(ensureFirstAdmin(usersIn(file), { production: false })).rejects.toThrow('it is not JSON')
})

test.each([
  ['short', 'A password must have at least 10 characters'],
  ['password123', 'This password is among the most common ones: choose another'],
  ['administrator', 'A password must not be the username'],
])('the weak password %s is accepted with a warning', async (adminPassword, reason) => {
  await using place = await begin()
  const { file, said, say } = place

  await ensureFirstAdmin(
    usersIn(file),
    {
      adminUsername: 'administrator',
      adminPassword,
      production: false,
    },
    say,
  )

  expect(said).toEqual([`ADMIN_PASSWORD is weak. ${reason}`])
})

test('of services that start together exactly one creates the admin', async () => {
  await using place = await begin()
  const { file } = place
  const source = (name: string) => JSON.stringify(new URL(`../src/${name}`, import.meta.url).href)
  const script = `const { ensureFirstAdmin } = await import(${source('open-auth.ts')})
    const { FileUsers } = await import(${source('users/file-users.ts')})
    const users = new FileUsers(${JSON.stringify(file)}, () => undefined)
    await ensureFirstAdmin(users, { production: false })`

  const said = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const child = spawn(process.execPath, ['--input-type=module', '-e', script])
      const [stderr, [status]] = await Promise.all([text(child.stderr), once(child, 'exit')])
      return { stderr, status }
    }),
  )

  expect(said.map(({ status }) => status)).toEqual([0, 0, 0, 0])
  const printed = said.map(({ stderr }) => stderr).join('')
  const [, password = ''] = /^Created the user admin with the password (\S+) .*\n$/.exec(printed) ?? []
  const users = readUsers(file)
  expect(users).toHaveLength(1)
  expect(await verifyPassword(users[0]?.password ?? '', password)).toBe(true)
})

test('the settings have their defaults', () => {
  expect(z.object(authSettings).parse({})).toMatchObject({ TOKEN_TTL: 3600, PASSWORD_LOGIN: true })
})

test.each([
  [{ TOKEN_TTL: '0' }],
  [{ TOKEN_TTL: '604801' }],
  [{ TOKEN_TTL: '1.5' }],
  [{ TOKEN_TTL: 'soon' }],
  [{ ADMIN_USERNAME: 'a b' }],
  [{ ADMIN_USERNAME: 'a'.repeat(65) }],
  [{ ADMIN_USERNAME: 'domain-service' }],
  [{ ADMIN_PASSWORD: 'x'.repeat(1025) }],
])('the settings %j are refused', (settings) => {
  expect(z.object(authSettings).safeParse(settings).success).toBe(false)
})
