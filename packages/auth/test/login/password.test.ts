import { argon2Sync } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatPhc, hashPassword, parsePhc, verifyPassword } from '../../src/login/password.ts'
import { weak } from '../support/start.ts'

const salt = 'c29tZXNhbHQ' // "somesalt"
const hash = 'CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'

test("Node's argon2id is the one of RFC 9106 (5.3)", () => {
  const tag = argon2Sync('argon2id', {
    message: Buffer.alloc(32, 1),
    nonce: Buffer.alloc(16, 2),
    secret: Buffer.alloc(8, 3),
    associatedData: Buffer.alloc(12, 4),
    memory: 32,
    passes: 3,
    parallelism: 4,
    tagLength: 32,
  })

  expect(tag.toString('hex')).toBe('0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659')
})

test('a string that the reference implementation made is verified', async () => {
  // phc-winner-argon2, test.c: hashtest(version, 2, 16, 1, "password", "somesalt", …, Argon2_id)
  const kept = `$argon2id$v=19$m=65536,t=2,p=1$${salt}$${hash}`

  expect(await verifyPassword(kept, 'password')).toBe(true)
  expect(await verifyPassword(kept, 'differentpassword')).toBe(false)
})

test('a password is kept with 19 MiB, 2 passes and 1 lane unless said otherwise', async () => {
  const kept = await hashPassword('correct horse')

  expect(kept).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
  expect(await verifyPassword(kept, 'correct horse')).toBe(true)
  expect(await verifyPassword(kept, 'correct horsf')).toBe(false)
})

test('the same password is kept under another salt each time', async () => {
  const [one, other] = [await hashPassword('x', weak), await hashPassword('x', weak)]

  expect(one).not.toBe(other)
})

test.each([
  ['the least', `$argon2id$v=19$m=8,t=1,p=1$${salt}$${hash}`],
  ['the most', `$argon2id$v=19$m=262144,t=16,p=16$${salt}$${hash}`],
  ['16 bytes of hash', `$argon2id$v=19$m=8,t=1,p=1$${salt}$AAAAAAAAAAAAAAAAAAAAAA`],
])('%s is read and written back as it was', (_name, text) => {
  const phc = parsePhc(text)

  expect(phc && formatPhc(phc)).toBe(text)
})

test.each([
  ['nothing', ''],
  ['argon2i', `$argon2i$v=19$m=19456,t=2,p=1$${salt}$${hash}`],
  ['argon2d', `$argon2d$v=19$m=19456,t=2,p=1$${salt}$${hash}`],
  ['bcrypt', '$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy'],
  ['version 16', `$argon2id$v=16$m=19456,t=2,p=1$${salt}$${hash}`],
  ['no version', `$argon2id$m=19456,t=2,p=1$${salt}$${hash}`],
  ['another order', `$argon2id$v=19$t=2,m=19456,p=1$${salt}$${hash}`],
  ['a missing parameter', `$argon2id$v=19$m=19456,t=2$${salt}$${hash}`],
  ['an unknown parameter', `$argon2id$v=19$m=19456,t=2,p=1,keyid=AA$${salt}$${hash}`],
  ['a leading zero', `$argon2id$v=19$m=019456,t=2,p=1$${salt}$${hash}`],
  ['a sign', `$argon2id$v=19$m=+19456,t=2,p=1$${salt}$${hash}`],
  ['no passes', `$argon2id$v=19$m=19456,t=0,p=1$${salt}$${hash}`],
  ['too much memory', `$argon2id$v=19$m=262145,t=2,p=1$${salt}$${hash}`],
  ['too many passes', `$argon2id$v=19$m=19456,t=17,p=1$${salt}$${hash}`],
  ['too many lanes', `$argon2id$v=19$m=19456,t=2,p=17$${salt}$${hash}`],
  ['less memory than the lanes need', `$argon2id$v=19$m=15,t=2,p=2$${salt}$${hash}`],
  ['padding', `$argon2id$v=19$m=19456,t=2,p=1$${salt}=$${hash}=`],
  ['base64url', `$argon2id$v=19$m=19456,t=2,p=1$____ZXNhbHQ$${hash}`],
  ['bits that base64 leaves over', `$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHR$${hash}`],
  ['a short salt', `$argon2id$v=19$m=19456,t=2,p=1$c29tZQ$${hash}`],
  ['a short hash', `$argon2id$v=19$m=19456,t=2,p=1$${salt}$AAAAAAAAAAAAAAAAAAAA`],
  ['a long hash', `$argon2id$v=19$m=19456,t=2,p=1$${salt}$${'A'.repeat(87)}`],
  ['no hash', `$argon2id$v=19$m=19456,t=2,p=1$${salt}`],
  ['a line break at the end', `$argon2id$v=19$m=19456,t=2,p=1$${salt}$${hash}\n`],
  ['a blank before', ` $argon2id$v=19$m=19456,t=2,p=1$${salt}$${hash}`],
])('%s is no PHC string of ours, and no password fits it', async (_name, text) => {
  expect(parsePhc(text)).toBeUndefined()
  expect(await verifyPassword(text, 'password')).toBe(false)
})

const someText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.stringMatching(/^\$argon2id\$v=19\$m=\d{1,8},t=\d{1,3},p=\d{1,3}\$[A-Za-z0-9+/=]{0,100}\$[A-Za-z0-9+/=]{0,100}$/),
)

test('any text is read whole, or not at all', () => {
  fc.assert(
    fc.property(someText, (text) => {
      const phc = parsePhc(text)
      return phc === undefined || formatPhc(phc) === text
    }),
    { numRuns: 2000 },
  )
})

test('any password fits what was made of it, and any other one does not', async () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 64 })
  await fc.assert(
    fc.asyncProperty(text, text, async (password, other) => {
      fc.pre(password.normalize('NFC') !== other.normalize('NFC'))
      const kept = await hashPassword(password, weak)
      expect(await verifyPassword(kept, password)).toBe(true)
      expect(await verifyPassword(kept, other)).toBe(false)
    }),
    { numRuns: 200 },
  )
})
