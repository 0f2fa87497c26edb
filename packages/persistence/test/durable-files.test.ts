import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { updateFile } from '../src/index.ts'

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
