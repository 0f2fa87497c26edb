import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { warmPageCache } from '../../src/sqlite/warm-page-cache.ts'

const folder = mkdtempSync(join(tmpdir(), 'static-warm-'))
afterAll(async () => {
  await opened.disposeAsync()
  rmSync(folder, { recursive: true })
})

const files = ['one', 'two', 'empty'].map((name) => join(folder, name))
const sizes = [300_000, 500_000, 0]
for (const [at, file] of files.entries()) writeFileSync(file, 'x'.repeat(sizes[at] ?? 0))
const { signal } = new AbortController()
const opened = new AsyncDisposableStack()

test('files are read to their end, and one that is missing is passed over', async () => {
  expect(await warmPageCache([join(folder, 'missing'), ...files], opened, { signal })).toBe(800_000)
})

test('no more than the limit is read, of all files together', async () => {
  expect(await warmPageCache(files, opened, { signal, maxBytes: 310_000 })).toBe(310_000)
})

test('nothing is read once the service stops', async () => {
  expect(await warmPageCache(files, opened, { signal: AbortSignal.abort() })).toBe(0)
})
