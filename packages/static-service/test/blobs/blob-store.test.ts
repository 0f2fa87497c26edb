import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { blobPathOf } from '../../src/blobs/blob-path.ts'
import { BlobStore } from '../../src/blobs/blob-store.ts'
import { filesBelow } from '../support/start.ts'

/** A store, and what is referred to in it. */
async function open(dataDir = mkdtempSync(join(tmpdir(), 'static-store-'))) {
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const referenced = new Set<string>()
  const errors: unknown[] = []
  const store = await BlobStore.open(dataDir, {
    isReferenced: async (digest) => referenced.has(digest),
    onError: (error) => errors.push(error),
  })
  const add = async (content: string) => {
    await using draft = await store.draft()
    await draft.write(Buffer.from(content))
    await draft.seal()
    const { digest } = await draft.keep()
    referenced.add(digest)
    return digest
  }
  const fileOf = (digest: string) => join(dataDir, 'blobs', ...blobPathOf(digest))
  return { dataDir, store, referenced, errors, add, fileOf }
}

const abc = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'

test('a content lies under its digest, once', async () => {
  const { store, add, fileOf, dataDir } = await open()

  const digests = await Promise.all([add('abc'), add('abc'), add('abc')])
  await store.settle()

  expect(new Set(digests)).toEqual(new Set([abc]))
  expect(filesBelow(dataDir)).toEqual([fileOf(abc)])
})

test('a draft that is not kept, or that nothing refers to when its block ends, is gone', async () => {
  const { store, dataDir } = await open()
  {
    await using draft = await store.draft()
    await draft.write(Buffer.from('x'))
  }
  {
    await using draft = await store.draft()
    await draft.write(Buffer.from('y'))
    await draft.seal()
    await draft.keep()
  }

  await store.settle()

  expect(filesBelow(dataDir)).toEqual([])
})

test('a content that is being read stays until the reader has finished', async () => {
  const { store, add, fileOf, referenced } = await open()
  const digest = await add('abc')
  const opened = await store.open(digest)
  referenced.clear()

  store.collect([digest])
  await store.settle()
  const wasThere = existsSync(fileOf(digest))
  const bytes = await opened?.read(1, 2)
  await opened?.[Symbol.asyncDispose]()
  await store.settle()

  expect([wasThere, bytes?.toString(), existsSync(fileOf(digest))]).toEqual([true, 'bc', false])
  expect(await store.open(digest)).toBeUndefined()
})

test('a content that is referred to is never collected', async () => {
  const { store, add, fileOf } = await open()
  const digest = await add('abc')

  store.collect([digest, digest])
  await store.settle()

  expect(existsSync(fileOf(digest))).toBe(true)
})

test('compressed forms lie beside their content and go with it', async () => {
  const { store, add, referenced, dataDir } = await open()
  const digest = await add('abc')
  await store.putForm(digest, 'br', Buffer.from('shorter'))
  await using form = await store.open(digest, 'br')

  const read = await form?.read(0, 100)
  const sizes = [await store.formSize(digest, 'br'), await store.formSize(digest, 'zstd')]
  await form?.[Symbol.asyncDispose]()
  referenced.clear()
  store.collect([digest])
  await store.settle()
  await store.putForm(digest, 'gzip', Buffer.from('too late'))

  expect([read?.toString(), ...sizes]).toEqual(['shorter', 7, undefined])
  expect(filesBelow(dataDir)).toEqual([])
})

test('storing a content again heals the bytes that were damaged on the disk', async () => {
  const { store, add, fileOf } = await open()
  const digest = await add('abc')
  writeFileSync(fileOf(digest), 'abX')

  await add('abc')

  await using opened = await store.open(digest)
  expect((await opened?.read(0, 3))?.toString()).toBe('abc')
})

test('drafts that an earlier process left are swept at the start', async () => {
  const { store, dataDir } = await open()
  const draft = await store.draft()
  onTestFinished(() => draft[Symbol.asyncDispose]())
  await draft.write(Buffer.from('x'))

  await open(dataDir)

  expect(readdirSync(join(dataDir, 'tmp'))).toEqual([])
})

test('however adding, dropping and reading overlap, what is referred to is there and nothing else', async () => {
  const step = fc.record({
    do: fc.constantFrom('add' as const, 'drop' as const, 'read' as const),
    content: fc.constantFrom('one', 'two'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      const { store, add, referenced, errors, dataDir, fileOf } = await open()
      const known = new Map<string, string>()

      await Promise.all(
        steps.map(async (each) => {
          const digest = known.get(each.content)
          if (each.do === 'add') known.set(each.content, await add(each.content))
          if (each.do === 'read' && digest) await readOnce(store, digest)
          if (each.do !== 'drop' || !digest) return
          referenced.delete(digest)
          store.collect([digest])
        }),
      )
      await store.settle()

      expect(errors).toEqual([])
      expect(filesBelow(dataDir).sort()).toEqual([...referenced].map(fileOf).sort())
    }),
    { numRuns: 25 },
  )
})

async function readOnce(store: BlobStore, digest: string) {
  await using opened = await store.open(digest)
  await opened?.read(0, 3)
}
