import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { SqliteSql, sql } from '@domains-and-files/persistence'
import { expect, test } from 'vitest'
import { start } from '../support/start.ts'
import { offsetOf, offsetStream, tus, urlOf } from '../support/tus.ts'

test('a writer that was silent is disconnected, and writes nothing to an upload that another one has', async () => {
  await using service = await start()
  const { create, patch, head } = tus(service)
  const bytes = randomBytes(2_000_000)
  const url = urlOf(await create('a', bytes.length))
  const silent = connect(service.port, '127.0.0.1').on('error', () => undefined)
  silent.write(
    `PATCH ${url} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${await service.tokenOf('admin')}\r\n` +
      `tus-resumable: 1.0.0\r\ncontent-type: ${offsetStream}\r\nupload-offset: 0\r\n` +
      `content-length: ${bytes.length}\r\n\r\n${'x'.repeat(1_100_000)}`,
  )
  await expect.poll(() => service.storedContents()).not.toEqual([])
  const locked = await patch(url, 0, bytes)
  const closed = once(silent, 'close')

  // The first one may renew its lease for the bytes that it had.
  await expect
    .poll(async () => {
      await letLeasesEnd(service.dataDir)
      return (await patch(url, 0, bytes.subarray(0, 1_000_000))).status
    })
    .toBe(204)
  await closed
  const known = await head(url)
  const done = await patch(url, 1_000_000, bytes.subarray(1_000_000))

  expect([locked.status, offsetOf(known), done.status]).toEqual([423, 1_000_000, 204])
  const { bytes: served } = await service.call('GET', '/static/a')
  expect(served.equals(bytes)).toBe(true)
})

/** As if ten seconds had passed without a byte. */
async function letLeasesEnd(dataDir: string) {
  const database = new SqliteSql({ file: join(dataDir, 'uploads.sqlite') })
  await database.run(sql`update uploads set writer_until = 0`)
  await database.close()
}

test('what has expired is removed, and its space', async () => {
  await using service = await start({ env: { UPLOAD_EXPIRES_S: '60' } })
  const { create, head } = tus(service)
  const url = urlOf(await create('a', 100_001, { body: randomBytes(100_000) }))
  const before = await service.storedContents()

  const database = new SqliteSql({ file: join(service.dataDir, 'uploads.sqlite') })
  await database.run(sql`update uploads set expires_at = 0`)
  await database.close()

  expect(before).toHaveLength(1)
  await expect.poll(async () => (await head(url)).status).toBe(410)
  await expect.poll(() => service.storedContents()).toEqual([])
})

test('the last PATCH can be repeated where the file was stored, and that could not be recorded', async () => {
  await using service = await start()
  const { create, patch, head } = tus(service)
  const url = urlOf(await create({ path: 'a', overwrite: 'false' }, 6))
  await patch(url, 0, 'abc')
  const database = new SqliteSql({ file: join(service.dataDir, 'uploads.sqlite') })
  database.database.exec(`create trigger fault before update of outcome on uploads
    begin select raise(fail, 'the database is away'); end`)

  const failed = await patch(url, 3, 'def')
  const known = await head(url)
  database.database.exec('drop trigger fault')
  await database.close()
  const partial = await patch(url, 3, 'de')
  const repeated = await patch(url, 3, 'def')

  expect([failed.status, offsetOf(known), partial.status]).toEqual([503, 5, 409])
  expect([repeated.status, repeated.headers['content-location']]).toEqual([204, '/api/files/a'])
  const { body } = await service.call('GET', '/api/changes')
  expect(body.pagination?.total_items).toBe(1)
})
