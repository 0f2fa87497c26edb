import { expect, test } from 'vitest'
import { resumableFile } from '../../../src/blobs/disk/resumable-file.ts'
import { StagingFile, StagingMemory } from '../../../src/blobs/staging-file.ts'

test('an upload whose file cannot be closed is counted out of the memory, too', async () => {
  const memory = new StagingMemory()
  const staging = new StagingFile({ file: 'none', memory })
  const upload = resumableFile(staging, async () => Promise.reject(new Error('not staged')))
  await upload.write(Buffer.from('text'))
  staging.close = () => Promise.reject(new Error('not closed'))

  await expect(upload[Symbol.asyncDispose]()).rejects.toThrow('not closed')
  expect(memory.bytes).toBe(0)
})
