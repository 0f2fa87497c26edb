import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { startEverything } from '../support/everything.ts'

test('npm start brings everything up, and the lines that it prints work when pasted', async () => {
  await using everything = await startEverything()
  const { text, child, dataDir } = everything
  const lines = text.slice(text.indexOf('# log in'), text.indexOf('Ctrl-C stops everything.'))

  const { stdout } = await promisify(execFile)('bash', ['-c', lines], { cwd: dataDir })

  const answers = stdout.split('\n').filter((line) => line.startsWith('{'))
  const told = answers.map((line) => JSON.parse(line))
  const [list, before, added, zone, replaced, restored] = told
  const [uploaded, batch, files, found, tree, version, current] = told.slice(6)
  expect(list.domains).toHaveLength(3)
  expect(before.hosts.length).toBeGreaterThan(3)
  expect(added).toMatchObject({ name: 'hello', type: 'A' })
  expect(zone.hosts).toHaveLength(before.hosts.length + 1)
  expect(replaced.hosts).toHaveLength(1)
  expect(restored.hosts).toEqual(zone.hosts)
  expect(uploaded).toMatchObject({ path: 'notes/hello.txt', size: 13 })
  expect(batch.files).toHaveLength(2)
  expect(files.pagination).toMatchObject({ total_items: 3 })
  expect(found.files).toEqual([uploaded])
  expect(tree.tree).toMatchObject({ file_count: 3 })
  expect(current).toEqual(version)
  expect(stdout).toMatch(/^Hello, files\nHello\n/m)
  expect(stdout.trimEnd()).toMatch(/\n204$/)
  expect(stdout).not.toContain('"request_id"')

  child.kill('SIGTERM')
  const [code] = await once(child, 'exit')
  expect(code).toBe(0)
}, 60_000)

test.each([
  ['npm start', []],
  ['npm run dev', ['--watch']],
])(
  'what %s has started ends when that is killed',
  async (_name, options) => {
    await using everything = await startEverything(options)
    const { domains, files, sandbox, child } = everything

    child.kill('SIGKILL')

    const isUp = (url: string) =>
      fetch(`${url}/health`, { headers: { connection: 'close' } }).then(
        () => true,
        () => false,
      )
    await expect
      .poll(() => Promise.all([domains, files, sandbox].map(isUp)), { timeout: 15_000 })
      .toEqual([false, false, false])
  },
  60_000,
)
