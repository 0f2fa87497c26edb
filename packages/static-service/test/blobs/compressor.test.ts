import { gzipSync } from 'node:zlib'
import { createLogger } from '@domains-and-files/http'
import { expect, test } from 'vitest'
import { Compressor } from '../../src/blobs/compressor.ts'
import { openS3Contents } from '../support/s3/s3-contents.ts'

test('forms that another replica made are announced, and not each time they are found', async () => {
  await using contents = await openS3Contents()
  const content = 'p { color: black }\n'.repeat(200)
  const digest = await contents.add(content)
  const other = await contents.openReplica()
  for (const coding of ['br', 'zstd', 'gzip'] as const) {
    await other.putForm(digest, coding, gzipSync(content))
  }
  const log = createLogger({ name: 'test', level: 'silent' })
  const compressor = new Compressor({ store: contents.store, log })
  const announced: string[] = []
  compressor.onForm((each) => announced.push(each))

  for (const _time of [1, 2]) {
    compressor.enqueue({ digest, size: content.length, contentType: 'text/css' })
    await compressor.idle()
  }

  expect(announced).toEqual([digest, digest, digest])
  await compressor.close()
})
