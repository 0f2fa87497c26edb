import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Everything, root, startEverything } from '../support/everything.ts'

// The commands `domains` and `files` of packages/client, run as `npx` runs them, on real services.

let everything: Everything
beforeAll(async () => {
  everything = await startEverything()
})
afterAll(async () => {
  await everything[Symbol.asyncDispose]()
})

const domain = 'alder-and-finch.com'

function run(command: 'domains' | 'files', args: string[], env: NodeJS.ProcessEnv = {}) {
  const prefix = command.toUpperCase()
  const running = promisify(execFile)(join(root, 'node_modules/.bin', command), args, {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      [`${prefix}_URL`]: command === 'domains' ? everything.domains : everything.files,
      [`${prefix}_USERNAME`]: 'admin',
      [`${prefix}_PASSWORD`]: everything.password,
      ...env,
    },
  })
  running.child.stdin?.end()
  return running.catch((error) => error)
}

test('domains: a record is tried, added, seen, and its change reverted', async () => {
  const args = ['add', domain, 'a', 'cli', '192.0.2.77', '--ttl', '300']
  const dry = await run('domains', [...args, '--dry-run'])
  const added = await run('domains', args)
  const shown = await run('domains', ['show', domain])
  const history = await run('domains', ['history', domain])
  const [id = ''] = history.stdout.split(' ')
  const reverted = await run('domains', ['revert', domain, id])
  const after = await run('domains', ['show', domain])

  expect(dry.stdout).toMatch(/^would add +\S+ +cli +A +300 +192\.0\.2\.77\n$/)
  expect(added.stdout).toMatch(/^added +\S+ +cli +A +300 +192\.0\.2\.77\n$/)
  expect(shown.stdout).toMatch(/cli +A +300 +192\.0\.2\.77/)
  expect(history.stdout).toMatch(/^\d+ +\S+ +admin +confirmed +\+cli A\n/)
  expect(reverted.stdout).toMatch(/^- +\S+ +cli +A/)
  expect(after.stdout).not.toContain('192.0.2.77')
})

test('domains: an exported zone file can be imported unchanged', async () => {
  const folder = createFolder({})
  const exported = await run('domains', ['export', domain])
  const file = join(folder, 'zone')
  writeFileSync(file, exported.stdout)

  const imported = await run('domains', ['import', domain, file])

  expect(exported.stdout).toContain(`$ORIGIN ${domain}.`)
  expect(imported.stdout).toBe('No change.\n')
})

test('files: a directory is synchronized, then only what changed', async () => {
  const folder = createFolder({ 'index.html': '<h1>Hi</h1>', 'css/a.css': 'a {}', 'b.txt': 'b' })
  const first = await run('files', ['sync', folder, 'site/'])
  writeFileSync(join(folder, 'b.txt'), 'changed')
  rmSync(join(folder, 'css'), { recursive: true })
  const dry = await run('files', ['sync', folder, 'site/', '--delete', '--dry-run'])
  const second = await run('files', ['sync', folder, 'site/', '--delete'])
  const listed = await run('files', ['list', 'site/'])

  expect(first.stdout).toBe('3 uploaded, 0 deleted, 0 unchanged\n')
  expect(dry.stdout).toBe('upload site/b.txt\ndelete site/css/a.css\n')
  expect(second.stdout).toBe('1 uploaded, 1 deleted, 1 unchanged\n')
  expect(listed.stdout).toMatch(/^7 .*site\/b\.txt\n11 .*site\/index\.html\n$/)
})

test('files: a file is stored under its own name, and removed', async () => {
  const folder = createFolder({ 'name with ünicode.txt': 'text' })

  const put = await run('files', ['put', join(folder, 'name with ünicode.txt'), 'notes/'])
  const removed = await run('files', ['remove', 'notes/name with ünicode.txt'])
  const again = await run('files', ['remove', 'notes/name with ünicode.txt'])

  expect(put.stdout).toBe('/static/notes/name%20with%20%C3%BCnicode.txt\n')
  expect(removed.code).toBeUndefined()
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('(file_not_found)')])
})

test.each([
  ['an unknown command', ['toast'], {}, 2, /^Unknown command: toast/],
  ['a missing argument', ['add', domain], {}, 2, /^Name a record type\./],
  ['no credentials', ['list'], { DOMAINS_USERNAME: '' }, 2, /^Set DOMAINS_TOKEN/],
  [
    'no password on standard input',
    ['list'],
    { DOMAINS_PASSWORD: undefined },
    2,
    /^Password of admin: \nSet DOMAINS_PASSWORD or DOMAINS_TOKEN\./,
  ],
  ['a wrong password', ['list'], { DOMAINS_PASSWORD: 'wrong' }, 1, /\(invalid_credentials\)\n$/],
  ['an absent service', ['list'], { DOMAINS_URL: 'http://127.0.0.1:1' }, 1, /cannot be reached/],
])('%s ends with its exit status and one reason', async (_name, args, env, code, reason) => {
  const failed = await run('domains', args, env)

  expect(failed.code).toBe(code)
  expect(failed.stdout).toBe('')
  expect(failed.stderr).toMatch(reason)
})

function createFolder(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'commands-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
  return folder
}
