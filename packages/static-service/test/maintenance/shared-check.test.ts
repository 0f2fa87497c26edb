import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { check } from '../../src/maintenance/files-command.ts'
import { type SharedStores, startSharedStores } from '../support/shared-stores.ts'
import { start } from '../support/start.ts'
import { digestOf, flip } from '../support/stored-contents.ts'

const large = randomBytes(300_000)
const style = 'p { color: black }\n'.repeat(200_000)

async function fill(stores: SharedStores) {
  await using service = await start({ env: stores.env })
  await service.put('small.txt', 'small')
  await service.put('docs/large.bin', large)
  await service.put('docs/copy.bin', large)
  await service.put('style.css', style)
  const forms = () => stores.query('select from static_service.contents where coding > 0')
  await expect.poll(async () => (await forms()).length).toBe(3)
}

const keyOf = async (stores: SharedStores, content: Buffer | string) => {
  const [row] = await stores.query<{ object_key: string }>(
    'select object_key from static_service.contents where digest = $1 and coding = 0',
    [digestOf(content)],
  )
  return row?.object_key ?? ''
}

test('contents and compressed forms in PostgreSQL and S3 that are sound are counted', async () => {
  await using stores = await startSharedStores()
  await fill(stores)

  const report = await check(stores.env)

  const bytes = 5 + large.length + style.length
  expect(report).toEqual({ files: 4, contents: 3, bytes, damages: [], orphans: [] })
})

test('objects and rows that are altered or missing are named by the files that have them', async () => {
  await using stores = await startSharedStores()
  await fill(stores)
  await stores.s3.store.alter(await keyOf(stores, large), flip)
  await stores.s3.store.remove(await keyOf(stores, style))
  await stores.query("update static_service.contents set bytes = 'smell' where coding = 0 and size = 5")
  await stores.query("update static_service.files set size = 6 where path = 'small.txt'")

  const { damages } = await check(stores.env)

  const faults = Object.fromEntries(damages.map(({ path, fault }) => [path, fault]))
  expect(faults['docs/copy.bin']).toContain('is not the one that was stored')
  expect(faults['docs/large.bin']).toBe(faults['docs/copy.bin'])
  expect(faults['style.css']).toContain('is missing')
  expect(faults['small.txt']).toBe('its content has been altered')
  expect(faults[`the content ${digestOf('small')}`]).toBe('its references are miscounted')
})

test('a check goes on past an object that the store does not give, and names its files', async () => {
  await using stores = await startSharedStores()
  await fill(stores)
  const archived = await keyOf(stores, large)
  stores.s3.fault = ({ key }) =>
    key === archived ? { kind: 'status', status: 403, code: 'InvalidObjectState' } : undefined

  const { contents, damages } = await check(stores.env)

  expect(contents).toBe(3)
  expect(damages.map(({ path }) => path).sort()).toEqual(['docs/copy.bin', 'docs/large.bin'])
  for (const { fault } of damages)
    expect(fault).toBe('its content cannot be read (InvalidObjectState: InvalidObjectState)')
})

test('while S3 is away nothing is called damaged', async () => {
  await using stores = await startSharedStores()
  await fill(stores)
  await stores.s3.pause()

  await expect(check(stores.env, { repair: true })).rejects.toThrow(
    'Cannot use the bucket in S3_BUCKET: Error, connect ECONNREFUSED',
  )
  expect(await stores.query('select from static_service.contents')).toHaveLength(6)
})
