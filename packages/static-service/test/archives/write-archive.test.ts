import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { fromBufferPromise } from 'yauzl'
import { peek, readArchive } from '../../src/archives/read-archive.ts'
import { type ArchivedFile, writeTar, writeZip } from '../../src/archives/write-archive.ts'

/** Two files, of which the second cannot be read after some bytes. */
async function* unreadable(bytes: number): AsyncGenerator<ArchivedFile> {
  const content = async function* (isWhole: boolean) {
    yield Buffer.alloc(isWhole ? 100_000 : bytes)
    if (!isWhole) throw new Error('it cannot be read')
  }
  const file = { size: 100_000, updatedAt: new Date(0).toISOString() }
  yield { name: 'a', content: () => content(true), ...file }
  yield { name: 'b', content: () => content(false), ...file }
}

// An error that nobody handles would end the service.
test.each([
  ['tar', writeTar, 0],
  ['tar', writeTar, 50_000],
  ['zip', writeZip, 0],
  ['zip', writeZip, 50_000],
])('a %s with a file that cannot be read is cut off, and nothing else', async (_name, write, bytes) => {
  const unhandled: unknown[] = []
  const note = (error: unknown) => void unhandled.push(error)
  process.on('uncaughtExceptionMonitor', note)

  await expect(buffer(write(unreadable(bytes)))).rejects.toThrow('it cannot be read')

  process.off('uncaughtExceptionMonitor', note)
  expect(unhandled).toEqual([])
})

// A name must not begin with a drive letter (APPNOTE.TXT, 4.4.17.1), and readers take it for an absolute path.
test('a file that is named like a drive has a relative name in a zip', async () => {
  async function* files(): AsyncGenerator<ArchivedFile> {
    async function* content() {
      yield Buffer.from('1')
    }
    for (const name of ['C:notes.txt', 'z:/deep'])
      yield { name, size: 1, updatedAt: new Date(0).toISOString(), content }
  }

  const zip = await fromBufferPromise(await buffer(writeZip(files())))

  const names = []
  for await (const { fileName } of zip.eachEntry()) names.push(fileName)
  expect(names).toEqual(['./C:notes.txt', './z:/deep'])
})

// The libraries decode bytes that are not UTF-8 to U+FFFD.
test.each([
  ['tar', writeTar],
  ['zip', writeZip],
])('a %s of a file whose name has U+FFFD can be read', async (_name, write) => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'archive-'))
  const expected = ['a\ufffdb', `long/${'\ufffd'.repeat(60)}`]
  async function* files(): AsyncGenerator<ArchivedFile> {
    for (const name of expected)
      yield { name, size: 0, updatedAt: new Date(0).toISOString(), content: async function* () {} }
  }
  const spool = async (chunks: AsyncIterable<Buffer>) => {
    const file = join(folder.path, 'spooled')
    await writeFile(file, chunks)
    return file
  }

  const names = []
  for await (const { name } of readArchive(await peek(write(files())), { maxBytes: 1000, maxFiles: 10, spool }))
    names.push(name)

  expect(names).toEqual(expected)
})

test('a zip that cannot hold the name of a file is cut off, and nothing else', async () => {
  async function* files(): AsyncGenerator<ArchivedFile> {
    yield { name: '../a', size: 1, updatedAt: new Date(0).toISOString(), content: async function* () {} }
  }

  await expect(buffer(writeZip(files()))).rejects.toThrow('../a')
})

test('a zip whose reader has left before its first file opens none', async () => {
  const [left, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const opened: string[] = []
  async function* files(): AsyncGenerator<ArchivedFile> {
    const content = async function* (name: string) {
      opened.push(name)
      yield Buffer.alloc(100)
    }
    try {
      await left.promise
      for (const name of ['a', 'b'])
        yield { name, size: 100, updatedAt: new Date(0).toISOString(), content: () => content(name) }
    } finally {
      ended.resolve()
    }
  }
  const archive = writeZip(files())
  archive.destroy()
  archive.once('close', left.resolve)
  await ended.promise

  expect(opened).toEqual([])
})
