import { randomBytes } from 'node:crypto'
import { mkdtempDisposable, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { StagingFile, StagingMemory } from '../../src/blobs/staging-file.ts'

test('the memory of a written chunk is free at once, unless other buffers share it', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'staging-file-'))
  const staging = new StagingFile({
    file: join(folder.path, 'staged'),
    memory: new StagingMemory(),
  })
  const [whole, shared] = [randomBytes(100_000), randomBytes(100_000)]
  const bytes = Buffer.concat([whole, shared.subarray(10)])
  await staging.write(whole)
  await staging.write(shared.subarray(10))
  await staging.settle()
  await staging.close()
  expect(whole).toHaveLength(0)
  expect(shared).toHaveLength(100_000)
  expect(bytes.equals(await readFile(staging.file))).toBe(true)
})
