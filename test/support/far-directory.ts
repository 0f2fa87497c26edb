import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

const cache = join(import.meta.dirname, '../../node_modules/.cache')

/** Creates a directory on another file system than the one of temporary files; it is removed with the test. */
export function makeFarDirectory(): string {
  mkdirSync(cache, { recursive: true })
  const { dev } = statSync(tmpdir())
  const parent = ['/dev/shm', cache].find((folder) => (statSync(folder, { throwIfNoEntry: false })?.dev ?? dev) !== dev)
  if (parent === undefined) throw new Error('there is only one file system')
  const directory = mkdtempSync(join(parent, 'far-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}
