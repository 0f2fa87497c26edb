import { randomBytes } from 'node:crypto'
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { check } from '../../src/maintenance/files-command.ts'
import { compressedCodings } from '../../src/rfc9110/content-codings.ts'
import { start } from '../support/start.ts'
import { alter, digestOf, flip } from '../support/stored-contents.ts'

type Harm = (bytes: Buffer) => Buffer | undefined

const cut: Harm = (bytes) => bytes.subarray(0, 100)

const sizes: [string, number][] = [
  ['small', 5_000],
  ['large', 3_000_000],
]
const harms: [string, Harm][] = [
  ['deleted', () => undefined],
  ['cut', cut],
  ['changed at one byte', flip],
]
const cases = sizes.flatMap(([name, size]) => harms.map(([harm, change]) => [name, harm, size, change] as const))

test.each(cases)(
  'a %s content that was %s behind our back is never served, is named in the log, and found by the check',
  async (_name, _harm, size, change) => {
    await using service = await start()
    const content = randomBytes(size)
    await service.put('a.bin', content)
    alter(service.dataDir, { digest: digestOf(content) }, change)

    const whole = await service.call('GET', '/static/a.bin')
    const part = await service.call('GET', '/static/a.bin', { headers: { range: 'bytes=0-9' } })
    const { damages } = await check({ DATA_DIR: service.dataDir })

    expect([whole.status, part.status]).toEqual([500, 500])
    expect(damages.map(({ path }) => path)).toEqual(['a.bin'])
    const told = service.lines().filter(({ msg }) => msg === 'request failed')
    expect(told).toHaveLength(2)
    for (const line of told) expect(JSON.stringify(line)).toMatch(/the blob .*a\.bin/)
  },
)

test.each(sizes)('a %s content that is stored again is served again', async (_name, size) => {
  await using service = await start()
  const content = randomBytes(size)
  await service.put('a.bin', content)
  alter(service.dataDir, { digest: digestOf(content) }, flip)
  await service.call('GET', '/static/a.bin')

  await service.put('b.bin', content)
  const { status, bytes } = await service.call('GET', '/static/a.bin')

  expect([status, bytes.equals(content)]).toEqual([200, true])
})

test('a content that is in memory goes on being served as it was stored', async () => {
  await using service = await start()
  const content = randomBytes(5_000)
  await service.put('a.bin', content)
  await service.call('GET', '/static/a.bin')
  alter(service.dataDir, { digest: digestOf(content) }, flip)

  const { status, bytes } = await service.call('GET', '/static/a.bin')

  expect([status, bytes.equals(content)]).toEqual([200, true])
})

describe('a compressed form', () => {
  const harmForm: [string, Harm][] = [
    ['cut', cut],
    ['empty', () => Buffer.alloc(0)],
    ['changed at one byte', flip],
    ['of another content', () => brotliCompressSync('something else')],
  ]
  const formCases = [10_000, 1_100_000].flatMap((size) =>
    harmForm.map(([harm, change]) => [size, harm, change] as const),
  )

  test.each(formCases)(
    'of %i bytes that is %s is not served, but the file is, and a new form is made',
    async (size, _harm, change) => {
      // Nothing is kept in memory, so every answer is from the disk.
      await using service = await start({ env: { MEMORY_CACHE_BYTES: '0' } })
      const content = Buffer.from(
        randomBytes(size / 20)
          .toString('hex')
          .repeat(10),
      )
      await service.put('a.txt', content)
      const get = () => service.call('GET', '/static/a.txt', { headers: { 'accept-encoding': 'br' } })
      const coding = async () => (await get()).headers['content-encoding']
      await expect.poll(coding).toBe('br')
      await expect.poll(async () => (await service.storedContents()).length).toBe(1 + compressedCodings.length)
      alter(service.dataDir, { digest: digestOf(content), coding: 'br' }, change)

      const harmed = await get()

      expect([harmed.status, harmed.headers['content-encoding']]).toEqual([200, undefined])
      expect(harmed.bytes.equals(content)).toBe(true)
      expect(service.lines()).toContainEqual(
        expect.objectContaining({ level: 'error', msg: 'compressed form damaged', form: 'br' }),
      )
      await expect.poll(coding).toBe('br')
      const mended = await get()
      expect(brotliDecompressSync(mended.bytes).equals(content)).toBe(true)
    },
  )
})
