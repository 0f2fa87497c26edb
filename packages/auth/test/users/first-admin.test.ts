import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { authSettings, ensureFirstAdmin, exampleSecret, resolveJwtSecret } from '../../src/index.ts'
import { verifyPassword } from '../../src/login/password.ts'
import { readUsers } from '../../src/users/users-file.ts'
import { makeFolder, makeUser, writeUsers } from '../support/start.ts'

const good = '0123456789abcdef0123456789abcdef'

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

test.each([true, false])(
  'the admin of the settings is made (production: %s)',
  async (production) => {
    await using place = await begin()
    const { file, said, say } = place

    await ensureFirstAdmin(file, {
      username: 'root',
      password: 'long enough',
      production,
      print: say,
    })

    const [admin] = readUsers(file)
    expect(admin).toMatchObject({ username: 'root', role: 'admin' })
    expect(await verifyPassword(admin?.password ?? '', 'long enough')).toBe(true)
    expect(said).toEqual([])
  },
)

test('without settings an admin with a random password is made, and printed once', async () => {
  await using place = await begin()
  const { file, said, say } = place

  await ensureFirstAdmin(file, { production: false, print: say })
  await ensureFirstAdmin(file, { production: false, print: say })

  const [, password = ''] =
    /^Made the user admin with the password ([\w-]{20}) /.exec(said[0] ?? '') ?? []
  expect(said).toHaveLength(1)
  expect(await verifyPassword(readUsers(file)[0]?.password ?? '', password)).toBe(true)
})

test('in production nobody is made up', async () => {
  await using place = await begin()
  const { file } = place

  const started = ensureFirstAdmin(file, { production: true })

  await expect(started).rejects.toThrow(/^There are no users in .*users\.json: set ADMIN_USERNAME/)
})

test('a file of nobody counts as none', async () => {
  await using place = await begin()
  const { file } = place
  await writeUsers(file, [])

  await expect(ensureFirstAdmin(file, { production: true })).rejects.toThrow('There are no users')
})

test.each([{ username: 'root' }, { password: 'long enough' }])(
  'half of the settings is refused: %j',
  async (half) => {
    await using place = await begin()
    const { file } = place

    const started = ensureFirstAdmin(file, { ...half, production: false })

    await expect(started).rejects.toThrow('set both ADMIN_USERNAME and ADMIN_PASSWORD, or neither')
  },
)

test('once there are users the settings change nothing', async () => {
  await using place = await begin()
  const { file } = place
  const vera = await makeUser('vera')
  await writeUsers(file, [vera])

  await ensureFirstAdmin(file, { username: 'root', password: 'long enough', production: true })

  expect(readUsers(file)).toEqual([vera])
})

test('a broken users file is not taken for none', async () => {
  await using place = await begin()
  const { file } = place
  await writeFile(file, '')

  await expect(ensureFirstAdmin(file, { production: false })).rejects.toThrow('it is not JSON')
})

test('a short password is taken, with a warning', async () => {
  await using place = await begin()
  const { file, said, say } = place

  await ensureFirstAdmin(file, {
    username: 'root',
    password: 'short',
    production: false,
    print: say,
  })

  expect(said).toEqual(['ADMIN_PASSWORD is shorter than 8 characters: choose a longer one.'])
})

test('of services that start at once exactly one makes the admin', async () => {
  await using place = await begin()
  const { file } = place
  const script = `const { ensureFirstAdmin } = await import(${JSON.stringify(new URL('../../src/index.ts', import.meta.url).href)})
    await ensureFirstAdmin(${JSON.stringify(file)}, { production: false })`

  const said = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const child = spawn(process.execPath, ['--input-type=module', '-e', script])
      const [stderr, [status]] = await Promise.all([text(child.stderr), once(child, 'exit')])
      return { stderr, status }
    }),
  )

  expect(said.map(({ status }) => status)).toEqual([0, 0, 0, 0])
  const printed = said.map(({ stderr }) => stderr).join('')
  const [, password = ''] = /^Made the user admin with the password (\S+) .*\n$/.exec(printed) ?? []
  const users = readUsers(file)
  expect(users).toHaveLength(1)
  expect(await verifyPassword(users[0]?.password ?? '', password)).toBe(true)
})

test.each([
  ['missing', undefined, 'JWT_SECRET is missing: set it to at least 32 random bytes.'],
  ['empty', '', 'JWT_SECRET is missing: set it to at least 32 random bytes.'],
  ['short', good.slice(1), 'JWT_SECRET must have at least 32 bytes.'],
  ['the example', exampleSecret, 'JWT_SECRET is the one of .env.example, which everybody knows.'],
])('in production a secret that is %s is refused', async (_name, secret, sentence) => {
  await using place = await begin()
  const { dataDir } = place

  const resolved = resolveJwtSecret({ secret, production: true, dataDir })

  await expect(resolved).rejects.toThrow(sentence)
})

test.each([
  ['32 bytes', good],
  ['32 bytes in 16 characters', '\u00e9'.repeat(16)],
])('a secret of %s is taken as it is', async (_name, secret) => {
  await using place = await begin()
  const { dataDir, said, say } = place

  const resolved = await resolveJwtSecret({ secret, production: true, dataDir, warn: say })

  expect([resolved, said]).toEqual([secret, []])
})

test.each(['short', exampleSecret])(
  'in development the weak secret %s is warned of',
  async (secret) => {
    await using place = await begin()
    const { dataDir, said, say } = place

    const resolved = await resolveJwtSecret({ secret, production: false, dataDir, warn: say })

    expect(resolved).toBe(secret)
    expect(said).toEqual([expect.stringMatching(/^JWT_SECRET .* would not start\.$/)])
  },
)

test('in development a missing secret is made, private, and the same after a restart', async () => {
  await using place = await begin()
  const { dataDir } = place
  const deeper = join(dataDir, 'not', 'there', 'yet')

  const first = await resolveJwtSecret({ production: false, dataDir: deeper })
  const second = await resolveJwtSecret({ production: false, dataDir: deeper })

  expect(first).toMatch(/^[\w-]{43}$/)
  expect(second).toBe(first)
  expect((await stat(join(deeper, 'jwt.secret'))).mode & 0o777).toBe(0o600)
})

test('two starts at once get the same made secret', async () => {
  await using place = await begin()
  const { dataDir } = place
  const resolve = () => resolveJwtSecret({ production: false, dataDir })

  const secrets = await Promise.all([resolve(), resolve(), resolve()])

  const kept = (await readFile(join(dataDir, 'jwt.secret'), 'utf8')).trim()
  expect(secrets).toEqual([kept, kept, kept])
})

test('a kept secret that was cut off is refused', async () => {
  await using place = await begin()
  const { dataDir } = place
  await writeFile(join(dataDir, 'jwt.secret'), '')

  await expect(resolveJwtSecret({ production: false, dataDir })).rejects.toThrow('too short')
})

test('the settings have their defaults', () => {
  expect(z.object(authSettings).parse({})).toEqual({ TOKEN_TTL: 3600 })
})

test.each([
  [{ TOKEN_TTL: '0' }],
  [{ TOKEN_TTL: '604801' }],
  [{ TOKEN_TTL: '1.5' }],
  [{ TOKEN_TTL: 'soon' }],
  [{ ADMIN_USERNAME: 'a b' }],
  [{ ADMIN_USERNAME: 'a'.repeat(65) }],
  [{ ADMIN_PASSWORD: 'x'.repeat(1025) }],
])('the settings %j are refused', (settings) => {
  expect(z.object(authSettings).safeParse(settings).success).toBe(false)
})
