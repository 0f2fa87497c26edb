import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { FolderBlobStore } from '../../../src/blobs/disk/folder-blob-store.ts'
import { blobPathOf } from '../../../src/blobs/stored-blob.ts'
import { alter, digestOf, filesBelow, rowsIn, storedIn } from '../../support/stored-contents.ts'

const small = 'abc'
const large = 'large '.repeat(10_000)
const sizes: [string, string][] = [
  ['small', small],
  ['large', large],
]

/** A store, and the digests that files refer to. */
async function open(
  dataDir = mkdtempSync(join(tmpdir(), 'static-store-')),
  options: { maxStagingBytes?: number } = {},
) {
  const referenced = new Set<string>()
  const errors: unknown[] = []
  const store = await FolderBlobStore.open(dataDir, {
    isReferenced: async (digest) => referenced.has(digest),
    onError: (error) => errors.push(error),
    ...options,
  })
  const close = async () => {
    await store.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
  onTestFinished(close)
  const add = async (content: string) => {
    await using draft = store.draft()
    await draft.write(Buffer.from(content))
    await draft.seal()
    const { digest } = await draft.keep()
    referenced.add(digest)
    return digest
  }
  const fileOf = (digest: string) => join(dataDir, 'blobs', ...blobPathOf(digest))
  return { dataDir, store, referenced, errors, add, fileOf, close }
}

async function readAll(store: FolderBlobStore, digest: string): Promise<string | undefined> {
  await using opened = await store.open(digest)
  return (await opened?.read(0, opened.size))?.toString()
}

test('a content is stored once under its digest: small ones as rows, large ones as files', async () => {
  const { store, add, fileOf, dataDir } = await open()

  await Promise.all([small, small, small, large, large, large].map((content) => add(content)))
  await store.settle()

  expect(storedIn(dataDir)).toEqual([fileOf(digestOf(large)), `row ${digestOf(small)} identity`])
  expect([await readAll(store, digestOf(small)), await readAll(store, digestOf(large))]).toEqual([small, large])
})

test.each([0, 1, 32_768])('a small content may pass through a file: %i bytes of memory', async (maxStagingBytes) => {
  const { store, add, dataDir } = await open(undefined, { maxStagingBytes })
  const content = 'x'.repeat(32_768)

  const digest = await add(content)

  expect(storedIn(dataDir)).toEqual([`row ${digest} identity`])
  expect(await readAll(store, digest)).toBe(content)
})

test('32,768 bytes are a row, 32,769 bytes are a file, and no bytes are a content', async () => {
  const { store, add, dataDir } = await open()

  await add('')
  await add('x'.repeat(32_768))
  await add('x'.repeat(32_769))

  expect(rowsIn(dataDir)).toHaveLength(2)
  expect(filesBelow(join(dataDir, 'blobs'))).toHaveLength(1)
  expect(await readAll(store, digestOf(''))).toBe('')
})

test.each(sizes)('a %s content that is not kept, or not referred to in the end, is gone', async (_size, content) => {
  const { store, dataDir } = await open()
  {
    await using draft = store.draft()
    await draft.write(Buffer.from(content))
  }
  {
    await using draft = store.draft()
    await draft.write(Buffer.from(content))
    await draft.seal()
    await draft.keep()
  }

  await store.settle()

  expect(storedIn(dataDir)).toEqual([])
})

test.each(sizes)(
  'a %s content whose file is removed before its upload ends is gone after that',
  async (_size, content) => {
    const { store, dataDir } = await open()
    {
      await using draft = store.draft()
      await draft.write(Buffer.from(content))
      await draft.seal()
      const { digest } = await draft.keep()
      draft.isReferenced = true
      store.collect([digest])
      await store.settle()
      expect(storedIn(dataDir)).toHaveLength(1)
    }

    await store.settle()

    expect(storedIn(dataDir)).toEqual([])
  },
)

test.each(sizes)('a %s content that is being read stays readable until it is closed', async (_size, content) => {
  const { store, add, referenced, dataDir } = await open()
  const digest = await add(content)
  const opened = await store.open(digest)
  referenced.clear()

  store.collect([digest])
  await store.settle()
  const bytes = await opened?.read(1, 2)
  await opened?.[Symbol.asyncDispose]()
  await store.settle()

  expect([bytes?.toString(), storedIn(dataDir)]).toEqual([content.slice(1, 3), []])
  expect(await store.open(digest)).toBeUndefined()
})

test.each(sizes)('a %s content that is referred to is never collected', async (_size, content) => {
  const { store, add } = await open()
  const digest = await add(content)

  store.collect([digest, digest])
  await store.settle()

  expect(await readAll(store, digest)).toBe(content)
})

test.each(sizes)(
  'compressed forms of a %s content are removed with it, and not stored after it',
  async (_size, content) => {
    const { store, add, referenced, dataDir } = await open()
    const digest = await add(content)
    const formBytes = Math.min(40_000, content.length) // No form is larger than its blob.
    await store.putForm(digest, 'br', Buffer.from('shorter'))
    await store.putForm(digest, 'gzip', randomBytes(formBytes))
    await using form = await store.open(digest, 'br')

    const read = await form?.read(0, 100)
    const found = [
      await store.formSize(digest, 'br'),
      await store.formSize(digest, 'gzip'),
      await store.formSize(digest, 'zstd'),
    ]
    referenced.clear()
    store.collect([digest])
    await store.settle()
    await store.putForm(digest, 'gzip', Buffer.from('too late'))

    expect([read?.toString(), ...found]).toEqual(['shorter', 7, formBytes, undefined])
    expect(storedIn(dataDir)).toEqual([])
  },
)

test.each(sizes)('storing a %s content again repairs damaged bytes', async (_size, content) => {
  const { store, add, dataDir } = await open()
  const digest = await add(content)
  alter(dataDir, { digest }, (bytes) => bytes.fill('X', 1, 2))
  const damaged = await readAll(store, digest)

  await add(content)

  expect(damaged).not.toBe(content)
  expect(await readAll(store, digest)).toBe(content)
})

test('storing a sound large content again leaves its file untouched', async () => {
  const { store, add, fileOf } = await open()
  const file = fileOf(await add(large))
  const before = statSync(file, { bigint: true })

  await add(large)
  await store.settle()

  const { ino, mtimeNs, ctimeNs } = statSync(file, { bigint: true })
  expect([ino, mtimeNs, ctimeNs]).toEqual([before.ino, before.mtimeNs, before.ctimeNs])
})

test('a start removes the staged contents that an earlier process left', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'static-store-'))
  mkdirSync(join(dataDir, 'tmp'))
  writeFileSync(join(dataDir, 'tmp/staged'), 'x')

  await open(dataDir)

  expect(readdirSync(join(dataDir, 'tmp'))).toEqual([])
})

test('however adding, dropping and reading overlap, exactly what is referred to is stored', async () => {
  const step = fc.record({
    do: fc.constantFrom('add' as const, 'drop' as const, 'read' as const),
    content: fc.constantFrom('one', 'two', large),
    turns: fc.nat({ max: 60 }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      const { store, add, referenced, errors, dataDir, close } = await open()
      const known = new Map<string, string>()

      await Promise.all(
        steps.map(async (each) => {
          for (let turn = 0; turn < each.turns; turn += 1) await nextTurn()
          const digest = known.get(each.content)
          if (each.do === 'add') known.set(each.content, await add(each.content))
          if (each.do === 'read' && digest) await readAll(store, digest)
          if (each.do !== 'drop' || !digest) return
          referenced.delete(digest)
          store.collect([digest])
        }),
      )
      await store.settle()

      const stored = storedIn(dataDir).map((name) => /[0-9a-f]{64}/.exec(name)?.[0])
      expect(errors).toEqual([])
      expect(stored.sort()).toEqual([...referenced].sort())
      await close()
    }),
    { numRuns: 15 },
  )
})

test('of many contents to collect, 64 at a time are checked and removed', async () => {
  let running = 0
  const counts: number[] = []
  const dataDir = mkdtempSync(join(tmpdir(), 'static-store-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  const store = await FolderBlobStore.open(dataDir, {
    isReferenced: async () => {
      running += 1
      counts.push(running)
      await new Promise(setImmediate)
      running -= 1
      return true
    },
    onError: () => undefined,
  })

  store.collect(Array.from({ length: 500 }, (_, at) => digestOf(String(at))))
  await store.close()

  expect([counts.length, Math.max(...counts)]).toEqual([500, 64])
})

test('while memory is short, contents go to their files as they come, small ones too', async () => {
  const { store, dataDir } = await open(undefined, { maxStagingBytes: 100_000 })
  const stagedBytes = () => readdirSync(join(dataDir, 'tmp')).map((name) => statSync(join(dataDir, 'tmp', name)).size)
  await using first = store.draft()
  await using second = store.draft()

  await first.write(Buffer.alloc(90_000)) // A begun batch.
  const before = stagedBytes()
  await second.write(Buffer.alloc(20_000))
  const after = stagedBytes()
  await first.write(Buffer.alloc(10))
  await second.write(Buffer.alloc(10))
  await second.seal()

  expect(before).toEqual([0])
  expect(after).toContain(20_000)
  const { digest } = await second.keep()
  expect(digest).toBe(digestOf('\0'.repeat(20_010)))
})

test('a small content that is stored takes no memory from those that follow in the request', async () => {
  const { store, dataDir } = await open(undefined, { maxStagingBytes: 100_000 })
  await using drafts = new AsyncDisposableStack()

  for (const fill of 'abcdefgh') {
    const draft = drafts.use(store.draft())
    await draft.write(Buffer.alloc(20_000, fill))
    await draft.seal()
    await draft.keep()
  }

  expect(readdirSync(join(dataDir, 'tmp'))).toEqual([])
})
