import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { FileView, updateFile } from '../src/index.ts'

function makeFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'shared-file-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

test('concurrent updates in one process lose none', async () => {
  const file = join(makeFolder(), 'count')

  const increment = () => updateFile(file, (text) => String(Number(text ?? 0) + 1))
  await Promise.all(Array.from({ length: 4 }, increment))

  expect(readFileSync(file, 'utf8')).toBe('4')
})

test('a view gives the content of each version of a file', () => {
  const file = join(makeFolder(), 'data')
  writeFileSync(file, '1')
  const view = new FileView(file, () => readFileSync(file, 'utf8'))
  const contents = [view.current]

  for (const text of ['2', '3']) {
    writeFileSync(file, text)
    contents.push(view.current, view.current)
  }

  expect(contents).toEqual(['1', '2', '2', '3', '3'])
})
