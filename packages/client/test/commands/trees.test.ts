import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readFiles } from '../../src/commands/trees.ts'

function createDirectory(files: Record<string, string>): string {
  const directory = mkdtempSync(join(tmpdir(), 'trees-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(directory, name, '..'), { recursive: true })
    writeFileSync(join(directory, name), content)
  }
  return directory
}

test('symbolic links are not followed', async () => {
  const directory = createDirectory({ 'a.txt': 'text' })
  symlinkSync('/etc/passwd', join(directory, 'link'))
  symlinkSync('..', join(directory, 'directory'))

  const files = await readFiles(directory)

  expect(files.map(({ path }) => path)).toEqual(['a.txt'])
})
