import { expect, test } from 'vitest'
import { openS3Contents } from '../../support/s3/s3-contents.ts'
import { huge, large } from '../../support/s3/uploads.ts'

test('a large content is sent in parts, and a failed one leaves none behind', async () => {
  await using contents = await openS3Contents()
  const operations = () => contents.s3.calls.map(({ operation }) => operation)
  await contents.add(huge)
  expect(operations()).toEqual(['create', 'part', 'part', 'part', 'complete'])

  contents.s3.fault = ({ operation }) =>
    operation === 'complete' ? { kind: 'status', status: 500 } : undefined
  await expect(contents.add(Buffer.concat([huge, large]))).rejects.toMatchObject({
    status: 503,
    code: 'unavailable',
  })

  expect(contents.s3.store.uploads.size).toBe(0)
  await expect.poll(() => contents.keysIn('garbage')).toHaveLength(1)
})
