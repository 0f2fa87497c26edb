import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { writeFileAtomic } from '../src/index.ts'

function makeFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'atomic-file-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

test('a file is replaced, private, with no temporary file left', () => {
  const folder = makeFolder()
  const file = join(folder, 'users.json')

  writeFileAtomic(file, 'first')
  writeFileAtomic(file, 'second')

  expect(readFileSync(file, 'utf8')).toBe('second')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readdirSync(folder)).toEqual(['users.json'])
})

test('a symbolic link stays, and its target is replaced', () => {
  const folder = makeFolder()
  const target = join(folder, 'target')
  const link = join(folder, 'link')
  writeFileAtomic(target, 'first')
  symlinkSync(target, link)

  writeFileAtomic(link, 'second')

  expect(readFileSync(target, 'utf8')).toBe('second')
  expect(readdirSync(folder).sort()).toEqual(['link', 'target'])
})

test('a failed write leaves nothing behind', () => {
  const folder = makeFolder()

  expect(() => writeFileAtomic(join(folder, 'missing', 'file'), 'text')).toThrow('ENOENT')

  expect(readdirSync(folder)).toEqual([])
})
