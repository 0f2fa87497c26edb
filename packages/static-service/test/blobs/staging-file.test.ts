import { hash, randomBytes } from 'node:crypto'
import { mkdtempDisposable, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { StagedBlob, StagingFile, StagingMemory } from '../../src/blobs/staging-file.ts'
import { headLength } from '../../src/files/media-type.ts'

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

test('chunks of a byte count with the memory that they take, and go to the file once it is short', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'staging-file-'))
  const memory = new StagingMemory(100_000)
  const staging = new StagingFile({ file: join(folder.path, 'staged'), memory })
  const bytes = randomBytes(1000)

  let most = 0
  for (const byte of bytes) {
    await staging.write(Buffer.of(byte))
    most = Math.max(most, memory.bytes)
  }
  await staging.settle()
  await staging.close()

  expect(most).toBeGreaterThan(90_000)
  expect(most).toBeLessThan(101_000)
  expect(bytes.equals(await readFile(staging.file))).toBe(true)
  expect(memory.bytes).toBe(0)
})

test('a file that is removed while it is written is counted out of the memory once', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'staging-file-'))
  const memory = new StagingMemory()
  const staging = new StagingFile({ file: join(folder.path, 'staged'), memory })
  await staging.write(randomBytes(2_000_000))
  await staging.write(randomBytes(1000))

  await staging.remove()

  expect(memory.bytes).toBe(0)
})

test.each([
  ['in memory', [1, 4095, 1, 4096, 2000, 2000, 2000, 0, 5, 3000, 1]],
  ['in a file', [1, 100_000, 1, 1, 4096, 1, 200_000, 7, 4000, 100, 0, 1, 1_100_000, 1, 1]],
])('chunks of any size keep their order %s', async (_where, sizes) => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'staging-file-'))
  const file = join(folder.path, 'staged')
  const staging = new StagingFile({ file, memory: new StagingMemory() })
  const chunks = sizes.map((size) => randomBytes(size))
  const bytes = Buffer.concat(chunks)
  for (const chunk of chunks) await staging.write(chunk)

  const taken = staging.take()
  if (!taken) await staging.settle()
  await staging.close()

  expect(bytes.equals(taken ?? (await readFile(file)))).toBe(true)
})

const blobsOfSizes: number[][] = [
  [],
  [10],
  [1, 4095, 1, 3, 28_667],
  [32_768],
  [1, 4095, 1, 3, 28_668],
  [32_768, 1],
  [100_000, 1, 5],
]

test.each([undefined, -1].flatMap((maxBytes) => blobsOfSizes.map((sizes) => ({ maxBytes, sizes }))))(
  'a blob of chunks of $sizes bytes has their digest, with staging memory of $maxBytes bytes',
  async ({ maxBytes, sizes }) => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'staging-file-'))
    const stored: (Uint8Array | string)[] = []
    const store = async (_blob: unknown, from: Uint8Array | string) => {
      stored.push(typeof from === 'string' ? await readFile(from) : from)
      return () => undefined
    }
    const memory = new StagingMemory(maxBytes)
    const options = { file: join(folder.path, 'staged'), memory, isFlushed: true, store }
    const chunks = sizes.map((size) => randomBytes(size))
    const bytes = Buffer.concat(chunks)
    {
      await using blob = new StagedBlob(options)
      for (const chunk of chunks) await blob.write(chunk)
      expect(bytes.subarray(0, headLength).equals(blob.head)).toBe(true)

      await blob.seal()

      const { length: size } = bytes
      expect(await blob.keep()).toEqual({ digest: hash('sha256', bytes), size })
      expect(stored.map((each) => bytes.equals(Buffer.from(each)))).toEqual([true])
    }
    expect(memory.bytes).toBe(0)
  },
)
