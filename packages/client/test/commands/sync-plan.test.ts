import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { listLocalFiles, planSync } from '../../src/commands/sync-plan.ts'

function createDirectory(files: Record<string, string>): string {
  const directory = mkdtempSync(join(tmpdir(), 'sync-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(directory, name, '..'), { recursive: true })
    writeFileSync(join(directory, name), content)
  }
  return directory
}

const entry = (content: string) => ({
  size: content.length,
  sha256: createHash('sha256').update(content).digest('hex'),
})

test('new and changed files are uploaded, equal ones left, others named for removal', async () => {
  const directory = createDirectory({ 'a.txt': 'same', 'b/c.txt': 'changed', 'd.txt': 'new' })
  const stored = new Map([
    ['site/a.txt', entry('same')],
    ['site/b/c.txt', entry('earlier')],
    ['site/gone.txt', entry('gone')],
  ])

  const plan = await planSync(await listLocalFiles(directory, 'site/'), stored)

  expect(plan.upload.map(({ path }) => path)).toEqual(['site/b/c.txt', 'site/d.txt'])
  expect(plan.remove).toEqual(['site/gone.txt'])
  expect(plan.unchanged).toBe(1)
})

test('symbolic links are not followed', async () => {
  const directory = createDirectory({ 'a.txt': 'text' })
  symlinkSync('/etc/passwd', join(directory, 'link'))
  symlinkSync('..', join(directory, 'directory'))

  const files = await listLocalFiles(directory, '')

  expect(files.map(({ path }) => path)).toEqual(['a.txt'])
})
