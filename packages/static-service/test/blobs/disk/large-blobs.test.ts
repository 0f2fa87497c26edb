import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openDirectories } from '../../../src/blobs/disk/large-blobs.ts'

test.each<[string, (folder: string) => string]>([
  ['with a slash at the end', (folder) => `${folder}/data/`],
  ['with two slashes', (folder) => `${folder}//data`],
  ['from the working directory', (folder) => `./${relative(process.cwd(), folder)}/data`],
])('the path of a data directory may be written %s', async (_how, write) => {
  const folder = mkdtempSync(join(tmpdir(), 'static-directories-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))

  const ensure = await openDirectories(write(folder))
  await ensure(join(write(folder), 'blobs', '0a', '1b'))

  expect(readdirSync(join(folder, 'data')).toSorted()).toEqual(['blobs', 'tmp', 'uploads'])
  expect(readdirSync(join(folder, 'data', 'blobs', '0a'))).toEqual(['1b'])
})
