import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { exampleSecret } from '../src/index.ts'
import { resolveJwtSecret } from '../src/settings.ts'
import { makeFolder } from './support/start.ts'

const good = '0123456789abcdef0123456789abcdef'

async function begin() {
  const folder = await makeFolder()
  const said: string[] = []
  const say = (message: string) => void said.push(message)
  return { dataDir: folder.path, said, say, [Symbol.asyncDispose]: folder[Symbol.asyncDispose] }
}

test.each([
  ['missing', undefined, 'JWT_SECRET is missing: set it to at least 32 random bytes.'],
  ['empty', '', 'JWT_SECRET is missing: set it to at least 32 random bytes.'],
  ['short', good.slice(1), 'JWT_SECRET has fewer than 32 bytes: set it to at least 32 random bytes.'],
])('production refuses a secret that is %s', async (_name, secret, sentence) => {
  await using place = await begin()
  const { dataDir } = place

  const resolved = resolveJwtSecret({ jwtSecret: secret, production: true, dataDir })

  await expect(resolved).rejects.toThrow(sentence)
})

test.each([
  ['32 bytes', good],
  ['32 bytes in 16 characters', '\u00e9'.repeat(16)],
])('a secret of %s is used as given', async (_name, secret) => {
  await using place = await begin()
  const { dataDir, said, say } = place

  const resolved = await resolveJwtSecret({ jwtSecret: secret, production: true, dataDir }, say)

  expect([resolved, said]).toEqual([secret, []])
})

test('development accepts a short secret with a warning', async () => {
  await using place = await begin()
  const { dataDir, said, say } = place

  const resolved = await resolveJwtSecret({ jwtSecret: 'short', production: false, dataDir }, say)

  expect(resolved).toBe('short')
  expect(said).toEqual([expect.stringMatching(/^JWT_SECRET .* would not start\.$/)])
})

test.each([true, false])('the published example is refused (production: %s)', async (production) => {
  await using place = await begin()
  const { dataDir } = place

  const resolved = resolveJwtSecret({ jwtSecret: exampleSecret, production, dataDir })

  await expect(resolved).rejects.toThrow(/^JWT_SECRET is a published example/)
})

test('development generates a missing secret, private, and reuses it after a restart', async () => {
  await using place = await begin()
  const { dataDir } = place
  const deeper = join(dataDir, 'not', 'there', 'yet')

  const first = await resolveJwtSecret({ production: false, dataDir: deeper })
  const second = await resolveJwtSecret({ production: false, dataDir: deeper })

  expect(first).toMatch(/^[\w-]{43}$/)
  expect(second).toBe(first)
  expect((await stat(join(deeper, 'jwt.secret'))).mode & 0o777).toBe(0o600)
})

test('services that start together get the same generated secret', async () => {
  await using place = await begin()
  const { dataDir } = place
  const resolve = () => resolveJwtSecret({ production: false, dataDir })

  const secrets = await Promise.all([resolve(), resolve(), resolve()])

  const kept = (await readFile(join(dataDir, 'jwt.secret'), 'utf8')).trim()
  expect(secrets).toEqual([kept, kept, kept])
})

test('a truncated stored secret is refused', async () => {
  await using place = await begin()
  const { dataDir } = place
  await writeFile(join(dataDir, 'jwt.secret'), '')

  await expect(resolveJwtSecret({ production: false, dataDir })).rejects.toThrow('too short')
})
