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
      `content-length: ${bytes.length}\r\n\r\n${'x'.repeat(100_000)}`,
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
