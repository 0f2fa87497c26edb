import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { peek, readArchive } from '../../src/archives/read-archive.ts'
import { makeTar } from '../support/tar.ts'

test('a tar with a size that is no number is refused, and not waited for', async () => {
  // In binary, with a reserved first byte; the checksum of the header stays right.
  const size = Buffer.from([0xc2, 0xbe, 0, 0, 0, 0, 0, 0, 0x30, 0x31, 0x30])
  const archive = await makeTar([['a', '12345678']])
  size.copy(archive, archive.indexOf('00000000010'))
  const source = Promise.withResolvers<void>()
  async function* chunks() {
    yield archive
    source.resolve()
  }
  const read = async () => {
    const spool = () => Promise.reject(new Error('it is no zip'))
    const entries = readArchive(await peek(chunks()), { maxBytes: 1000, maxFiles: 1, spool })
    for await (const { content } of entries) for await (const _ of content);
  }
  // All its bytes have been taken, and the event loop has nothing left to do about them.
  const isWaiting = async () => {
    await source.promise
    for (let turn = 0; turn < 1000; turn += 1) await setImmediate()
    return 'waits'
  }

  const outcome = await Promise.race([read().catch(({ message }) => message), isWaiting()])

  expect(outcome).toContain('its size is malformed')
})
