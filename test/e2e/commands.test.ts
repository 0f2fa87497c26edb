import { execFile } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { type Everything, root, startEverything } from '../support/everything.ts'

// The commands `domains` and `files` of packages/client on real services.

let everything: Everything
beforeAll(async () => {
  everything = await startEverything()
})
afterAll(async () => {
  await everything[Symbol.asyncDispose]()
})

const domain = 'alder-and-finch.com'

const Token = z.object({ access_token: z.string() })

type ClientCommand = 'domains' | 'files'

/** Runs a command's bundle in a thread: a process of its own takes twice the CPU time. */
async function run(command: ClientCommand, args: string[], env: NodeJS.ProcessEnv = {}) {
  const thread = new Worker(join(root, 'packages/client/dist', `${command}.js`), {
    argv: args,
    env: environmentOf(command, env),
    stdin: true,
    stdout: true,
    stderr: true,
  })
  thread.stdin?.end()
  const exited = once(thread, 'exit')
  const [stdout, stderr, [status]] = await Promise.all([text(thread.stdout), text(thread.stderr), exited])
  return { code: status === 0 ? undefined : status, stdout, stderr } // As of a process.
}

/** Runs a command as `npx` runs it. */
function spawnCommand(
  command: ClientCommand,
  args: string[],
  env: NodeJS.ProcessEnv = {},
  program = join(root, 'node_modules/.bin', command),
) {
  const running = promisify(execFile)(program, args, { env: environmentOf(command, env) })
  running.child.stdin?.end()
  return Object.assign(
    running.catch((error) => error),
    { child: running.child },
  )
}

function environmentOf(command: ClientCommand, env: NodeJS.ProcessEnv) {
  const prefix = command.toUpperCase()
  return {
    PATH: process.env.PATH,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    [`${prefix}_URL`]: command === 'domains' ? everything.domains : everything.files,
    [`${prefix}_USERNAME`]: 'admin',
    [`${prefix}_PASSWORD`]: everything.password,
    ...env,
  }
}

/** A connection to a service that a test breaks. */
async function openRelay(url: string) {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const service = connect(Number(new URL(url).port), '127.0.0.1')
    for (const socket of [client, service]) {
      sockets.add(socket)
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    }
    client.pipe(service).pipe(client)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, // It listens on a port.
    cut: () => {
      for (const socket of sockets) socket.destroy()
    },
  }
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

test('domains: what one user proposes, another one approves or rejects', async () => {
  const bob = { username: 'bob', password: 'correct horse battery' }
  const send = async (path: string, body: unknown, token = '') => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
    const options = { method: 'POST', headers, body: JSON.stringify(body) }
    return (await fetch(`${everything.domains}${path}`, options)).json()
  }
  const credentials = { username: 'admin', password: everything.password }
  const { access_token: token } = Token.parse(await send('/api/auth/login', credentials))
  await send('/api/users', { ...bob, role: 'editor', writes: 'propose' }, token)
  const env = { DOMAINS_USERNAME: bob.username, DOMAINS_PASSWORD: bob.password }
  const add = (name: string) => run('domains', ['add', domain, 'a', name, '192.0.2.78'], env)

  const [wanted, unwanted] = [await add('wanted'), await add('unwanted')]
  const proposals = await run('domains', ['proposals'])
  const idOf = ({ stdout }: { stdout: string }) => /change (\d+)/.exec(stdout)?.[1] ?? ''
  const approved = await run('domains', ['approve', idOf(wanted)])
  const rejected = await run('domains', ['reject', idOf(unwanted), '--reason', 'not now'])
  const history = async () => (await run('domains', ['history', domain])).stdout
  await expect.poll(history).toMatch(/bob +confirmed +\+wanted A/)

  expect(wanted.stdout).toMatch(/^Proposed as change \d+: another person can approve it\.\n$/)
  expect(proposals.stdout).toMatch(/bob .*\n\+ +\S+ +unwanted +A[\s\S]*bob .*\n\+ +\S+ +wanted +A/)
  expect(approved.stdout).toBe(`Change ${idOf(wanted)} of ${domain} is queued.\n`)
  expect(rejected.stdout).toBe(`Change ${idOf(unwanted)} is rejected.\n`)
})

test.each([
  ['domains', 'zone.changed', (n: number) => ['add', domain, 'a', `event${n}`, '192.0.2.80']],
  ['files', 'files.changed', (n: number) => ['put', join(root, 'LICENSE'), `event${n}.ts`]],
] as const)(
  '%s: events are printed, and followed through a broken connection, each once',
  async (command, type, change) => {
    const relay = await openRelay(everything[command])
    await run(command, [...change(1)])
    const listed = await run(command, ['events', '--types', type])
    const before = listed.stdout
      .trim()
      .split('\n')
      .map((line: string) => JSON.parse(line))
    const args = ['events', '--follow', '--types', type, '--after', before.at(-1).id]
    const following = spawnCommand(command, args, { [`${command.toUpperCase()}_URL`]: relay.url })
    onTestFinished(() => void following.child.kill())
    let printed = ''
    following.child.stdout?.on('data', (text) => (printed += text))
    const ids = () => printed.split('\n').flatMap((line) => (line ? JSON.parse(line).id : []))

    await run(command, [...change(2)])
    await expect.poll(() => ids().length).toBe(1)
    relay.cut()
    await run(command, [...change(3)])
    await expect.poll(() => ids().length).toBe(2)
    const all = await run(command, ['events', '--types', type, '--after', before.at(-1).id])

    expect(before.at(-1)).toMatchObject({ type, by: 'admin' })
    expect(printed).toBe(all.stdout)
  },
)

test('domains: a refused option is named in words', async () => {
  const refused = await run('domains', ['events', '--after', '0']).catch((failure) => failure)

  expect(refused.stderr).toBe(
    'after: must be the "next" of an earlier response, the id of an event, or latest (validation_failed)\n',
  )
})

test('domains: a command whose output nobody reads any more ends without a stack', async () => {
  const listing = spawnCommand('domains', ['list'])
  listing.child.stdout?.destroy()

  expect(await listing).toMatchObject({ code: 1, stderr: '' })
})

test('domains: output that cannot be written is an error in one line', async () => {
  const program = join(root, 'node_modules/.bin/domains')

  const listing = await spawnCommand('domains', ['-c', `exec '${program}' list > /dev/full`], {}, '/bin/sh')

  expect(listing).toMatchObject({ code: 1, stderr: expect.stringMatching(/^ENOSPC: [^\n]*\n$/) })
})

test('domains: a record is added once the registrar is no longer busy', async () => {
  const keys: unknown[] = []
  const busy = createHttpServer(({ headers }, response) => {
    keys.push(headers['idempotency-key'])
    response.writeHead(keys.length === 1 ? 503 : 201, { 'content-type': 'application/json', 'retry-after': '0' })
    response.end(JSON.stringify({ id: 'a', name: 'www', type: 'A', address: '192.0.2.1', ttl: 1800 }))
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void busy.close())
  await once(busy, 'listening')
  const { port } = busy.address() as AddressInfo

  const env = { DOMAINS_URL: `http://127.0.0.1:${port}`, DOMAINS_TOKEN: 'ds_token' }
  const added = await run('domains', ['add', domain, 'A', 'www', '192.0.2.1'], env)

  expect(added).toMatchObject({ stderr: '', stdout: expect.stringMatching(/^added .*192\.0\.2\.1/) })
  expect(keys).toEqual([expect.any(String), keys[0]])
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

test('domains: a zone without records of DNS is pulled, and an email type alone is planned and applied', async () => {
  const name = 'quietharbour.org'
  const [folder, elsewhere] = [createFolder({}), createFolder({})]
  const file = join(folder, `${name}.zone`)
  const record = '; domain-service record @ 1800 URL "https://example.net/"\n'
  writeFileSync(file, `; domain-service email-type NONE\n${record}`)
  await run('domains', ['import', name, file])
  const pulled = await run('domains', ['pull', elsewhere])
  writeFileSync(file, `; domain-service email-type FWD\n${record}`)

  const planned = await spawnCommand('domains', ['plan', folder])
  const applied = await run('domains', ['apply', folder])
  const again = await run('domains', ['plan', folder])

  expect(pulled.stdout).toContain(`${name}\n`)
  expect([planned.code, planned.stdout]).toEqual([2, `${name}\n  ~  email type  NONE to FWD\n`])
  expect(applied.stdout).toContain(`${name}  confirmed  +0 -0\n`)
  expect([again.code, again.stdout]).toEqual([undefined, 'No change.\n'])
})

test('domains: zones are pulled into a folder, planned and applied from it', async () => {
  const folder = createFolder({})
  const other = 'copperkettle.net'
  const pulled = await run('domains', ['pull', folder])
  const same = await run('domains', ['plan', folder])
  for (const file of readdirSync(folder)) {
    if (![`${domain}.zone`, `${other}.zone`].includes(file)) rmSync(join(folder, file))
    else appendFileSync(join(folder, file), 'from-git 300 IN A 192.0.2.88\n')
  }
  const planned = await spawnCommand('domains', ['plan', folder])
  const applied = await run('domains', ['apply', folder])
  const again = await run('domains', ['plan', folder])
  writeFileSync(join(folder, `${other}.zone`), 'www IN A 192.0.2.999\n')
  const refused = await run('domains', ['apply', folder])
  const foreign = await run('domains', ['plan', createFolder({ 'foreign.com.zone': '' })])

  expect(pulled.stdout).toContain(`${domain}\n`)
  expect([same.code, same.stdout, same.stderr]).toEqual([undefined, 'No change.\n', ''])
  expect(planned.code).toBe(2)
  expect(planned.stdout.match(/\+ +from-git +A +300 +192\.0\.2\.88/g)).toHaveLength(2)
  expect([applied.code, applied.stderr]).toEqual([undefined, ''])
  expect(applied.stdout.match(/^\S+ {2}confirmed {2}\+1 -0$/gm)).toHaveLength(2)
  expect([again.code, again.stdout]).toEqual([undefined, 'No change.\n'])
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringMatching(/^copperkettle\.net: \/line\/1: [\s\S]*Nothing was changed\.\n$/),
  ])
  expect([foreign.code, foreign.stderr]).toEqual([
    1,
    expect.stringMatching(/^foreign\.com: There is no domain foreign\.com .*\(domain_not_found\)\n$/),
  ])
})

test('files: a directory is synchronized, then only what changed', async () => {
  const folder = createFolder({ 'index.html': '<h1>Hi</h1>', 'css/a.css': 'a {}', 'b.txt': 'b' })
  const first = await run('files', ['sync', folder, 'site/'])
  writeFileSync(join(folder, 'b.txt'), 'changed')
  rmSync(join(folder, 'css'), { recursive: true })
  const kept = await run('files', ['sync', folder, 'site/'])
  const dry = await run('files', ['sync', folder, 'site/', '--delete', '--dry-run'])
  const second = await run('files', ['sync', folder, 'site/', '--delete'])
  const listed = await run('files', ['list', 'site/'])

  expect(first.stdout).toMatch(/: 3 added, 0 replaced, 0 removed, 0 unchanged\n$/)
  expect(kept.stdout).toMatch(/: 0 added, 1 replaced, 0 removed, 1 unchanged\n$/)
  expect(dry.stdout).toBe('- site/css/a.css\n0 added, 0 replaced, 1 removed, 2 unchanged\n')
  expect(second.stdout).toMatch(/^- site\/css\/a\.css\nchange \d+: 0 added, 0 replaced, 1 removed, 2 unchanged\n$/)
  expect(listed.stdout).toMatch(/^7 .*site\/b\.txt\n11 .*site\/index\.html\n$/)
})

test('files: a directory is deployed in one step, rolled back, downloaded, and a change reverted', async () => {
  const folder = createFolder({ 'index.html': 'one', 'a.js': 'a', 'gone/x': 'x' })
  const first = await run('files', ['deploy', folder, 'app/', '--version', 'app-1'])
  writeFileSync(join(folder, 'index.html'), 'two')
  rmSync(join(folder, 'gone'), { recursive: true })
  writeFileSync(join(folder, 'new'), 'n'.repeat(100_000))
  const dry = await run('files', ['deploy', folder, 'app/', '--dry-run'])
  const second = await run('files', ['deploy', folder, 'app/'])
  const again = await run('files', ['deploy', folder, 'app/'])
  const states = await run('files', ['history', 'app/index.html'])
  const copy = join(folder, 'copy')
  const downloaded = await run('files', ['download', 'app/', copy, '--at', 'app-1'])
  const rolledBack = await run('files', ['rollback', 'app/'])
  const [, change = ''] = /change (\d+)/.exec(rolledBack.stdout) ?? []
  const reverted = await run('files', ['revert', change])

  expect(first.stdout).toMatch(
    /^\+ app\/a.js\n\+ app\/gone\/x\n\+ app\/index.html\nchange \d+: 3 added, 0 replaced, 0 removed, 0 unchanged\n$/,
  )
  expect(dry.stdout).toBe('- app/gone/x\n~ app/index.html\n+ app/new\n')
  expect(second.stdout).toMatch(
    /^- app\/gone\/x\n~ app\/index.html\n\+ app\/new\nchange \d+: 1 added, 1 replaced, 1 removed, 1 unchanged\n$/,
  )
  expect(again.stdout).toBe('0 added, 0 replaced, 0 removed, 3 unchanged\n')
  expect(states.stdout.trim().split('\n')).toHaveLength(2)
  expect(downloaded.stderr).toBe('')
  expect(readFileSync(join(copy, 'index.html'), 'utf8')).toBe('one')
  expect(readFileSync(join(copy, 'gone/x'), 'utf8')).toBe('x')
  expect(rolledBack.stdout).toMatch(/1 added, 1 replaced, 1 removed/)
  expect(reverted.stdout).toMatch(/1 added, 1 replaced, 1 removed/)
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

test('files: a directory is not put as a file', async () => {
  const put = await run('files', ['put', createFolder({ 'a.txt': 'a' }), 'put/'])

  expect([put.code, put.stderr]).toEqual([1, expect.stringMatching(/sync or deploy.*\n$/)])
})

test('files: a large file is stored in several requests', async () => {
  const folder = createFolder({ 'large.bin': 'large '.repeat(3_000_000) })

  const put = await run('files', ['put', join(folder, 'large.bin')])
  writeFileSync(join(folder, 'large.bin'), 'other '.repeat(3_000_000))
  const dry = await run('files', ['sync', folder, 'copies/', '--dry-run'])
  const synced = await run('files', ['sync', folder, 'copies/'])
  const again = await run('files', ['sync', folder, 'copies/'])
  const states = await run('files', ['history', 'copies/large.bin'])

  expect(put.stdout).toBe('/static/large.bin\n')
  expect(dry.stdout).toBe('+ copies/large.bin\n')
  expect([synced.stdout, again.stdout]).toEqual(Array(2).fill('0 added, 0 replaced, 0 removed, 1 unchanged\n'))
  expect(states.stdout).toContain(' upload ')
  await run('files', ['remove', 'large.bin'])
})

test('the packed client works in an empty folder: both commands, both clients, and its types', async () => {
  const folder = createFolder({
    'package.json': '{ "type": "module" }',
    'use.ts': `
      import { DomainClient, FileClient, ProblemError, unwrap } from '@domains-and-files/client'
      const credentials = { username: 'admin', password: process.env.PASSWORD ?? '' }
      const domains = new DomainClient({ baseUrl: process.env.DOMAINS ?? '', credentials })
      const files = new FileClient({ baseUrl: process.env.FILES ?? '', credentials })
      const list = await unwrap(domains.api.GET('/api/domains', { params: { query: {} } }))
      const names: string[] = list.domains.map(({ name }) => name)
      const stored = await files.upload('packed.txt', new Blob(['packed']))
      const size: number = stored.size
      const refused = await files.upload('../x', new Blob(['x'])).catch((error: ProblemError) => error)
      console.log(JSON.stringify([names.length, size, refused instanceof ProblemError]))`,
  })
  const dependency = realpathSync(join(root, 'packages/client/node_modules/openapi-fetch'))
  const dependencies = [dependency, realpathSync(join(dependency, '../openapi-typescript-helpers'))]
  await shell('npm', ['pack', '--silent', join(root, 'packages/client'), ...dependencies], folder)
  const archives = readdirSync(folder).filter((name) => name.endsWith('.tgz'))
  const install = ['install', '--offline', '--no-audit', '--no-fund']
  await shell('npm', [...install, ...archives.map((name) => `./${name}`)], folder)
  // `npm pack` of an installed package leaves out some of its declarations.
  for (const directory of dependencies) {
    cpSync(directory, join(folder, 'node_modules', basename(directory)), { recursive: true })
  }
  const installed = (command: string) => join(folder, 'node_modules/.bin', command)

  const listed = await spawnCommand('domains', ['list'], {}, installed('domains'))
  const put = await spawnCommand('files', ['put', join(folder, 'package.json')], {}, installed('files'))
  const strict = ['--strict', '--module', 'nodenext', '--types', 'node', '--typeRoots', types]
  const compiled = await shell(
    join(root, 'node_modules/.bin/tsc'),
    [...strict, '--skipLibCheck', '--target', 'es2023', 'use.ts'],
    folder,
  )
  const used = await shell(process.execPath, ['use.js'], folder, {
    PASSWORD: everything.password,
    DOMAINS: everything.domains,
    FILES: everything.files,
  })

  expect(listed.stdout).toContain(domain)
  expect(put.stdout).toBe('/static/package.json\n')
  expect(compiled).toBe('')
  expect(JSON.parse(used)).toEqual([20, 6, true])
})

const types = join(root, 'node_modules/@types')

const shell = async (command: string, args: string[], cwd: string, env: NodeJS.ProcessEnv = {}) =>
  (
    await promisify(execFile)(command, args, { cwd, env: { ...process.env, ...env } }).catch(({ message, stdout }) =>
      Promise.reject(new Error(`${message}\n${stdout}`)),
    )
  ).stdout

// `plan` exits with 2 where there are differences: nothing else does.
test.each([
  ['an unknown command', ['toast'], {}, 1, /\n\nUnknown command: toast\n$/],
  ['a missing argument', ['add', domain], {}, 1, /\n\nName a record type\.\n$/],
  ['an option of other commands', ['approve', '1', '--dry-run'], {}, 1, /\n\nThere is no --dry-run with approve\.\n$/],
  ['an argument too many', ['show', domain, 'example.com'], {}, 1, /\n\nToo many arguments for show\.\n$/],
  ['a misspelt option of plan', ['plan', '.', '--jsn'], {}, 1, /\n\nUnknown option '--jsn'.*\n$/],
  ['no credentials', ['plan', '.'], { DOMAINS_USERNAME: '' }, 1, /^Set DOMAINS_TOKEN.*\n$/],
  ['a folder without zone files', ['plan', '.'], {}, 1, /^\. has no file named like example\.com\.zone\.\n$/],
  ['a wrong password', ['list'], { DOMAINS_PASSWORD: 'wrong' }, 1, /\(invalid_credentials\)\n$/],
  ['a folder that is not there', ['plan', 'nosuch'], {}, 1, /^nosuch: no such file or directory\n$/],
  ['an absent service', ['list'], { DOMAINS_URL: 'http://127.0.0.1:1' }, 1, /cannot be reached/],
])('%s ends with its exit status and one reason', async (_name, args, env, code, reason) => {
  const failed = await run('domains', args, env)

  expect(failed.code).toBe(code)
  expect(failed.stdout).toBe('')
  expect(failed.stderr).toMatch(reason)
})

test('no password on standard input ends with an exit status and one reason', async () => {
  const failed = await spawnCommand('domains', ['list'], { DOMAINS_PASSWORD: undefined })

  expect(failed).toMatchObject({ code: 1, stdout: '' })
  expect(failed.stderr).toMatch(/^Password of admin: \nSet DOMAINS_PASSWORD or DOMAINS_TOKEN\.\n$/)
})

test.each([
  ['domains', ['list', '--help']],
  ['domains', ['-h']],
  ['files', ['sync', '-h', 'site']],
] as const)('%s %j prints the commands', async (command, args) => {
  const { code, stdout, stderr } = await run(command, [...args], { [`${command.toUpperCase()}_USERNAME`]: '' })

  expect([code, stderr, stdout]).toEqual([undefined, '', expect.stringContaining(`  ${command} list`)])
})

test.each([
  ['backup', ['--help'], /^Usage: npm run backup -- .*\n[\s\S]*--keep/],
  ['restore', ['-h'], /^Usage: npm run restore -- .*\n[\s\S]*must be empty/],
  ['drill', ['domain', '--help'], /^Usage: npm run drill -- /],
  ['files', ['check', '--help'], /^Usage: npm run files -- /],
  ['users', ['add', '--role', '--help'], /^Manages the users/],
  ['tokens', ['-h'], /^Manages the API tokens/],
  ['trusts', ['--help'], /^Manages trusts/],
])('npm run %s -- %j explains the command', async (script, args, usage) => {
  const answer = await shell('npm', ['run', '--silent', script, '--', ...args], root)

  expect(answer).toMatch(usage)
})

test.each([
  ['domains', ['pull', '/proc/zones']],
  ['files', ['download', '/', '/proc/copy']],
] as const)('%s %j ends where no folder can be created', async (command, args) => {
  await run('files', ['put', createFolder({ 'one.txt': 'one' }).concat('/one.txt')])
  const failed = await run(command, [...args])

  expect([failed.code, failed.stderr]).toEqual([1, expect.stringMatching(/^\/proc\/\w+: no such file or directory\n$/)])
})

test.each([['put'], ['deploy'], ['sync']])('%s names the file that is not there', async (command) => {
  const failed = await run('files', [command, 'nosuch', 'web/'])

  expect([failed.code, failed.stderr]).toEqual([1, 'nosuch: no such file or directory\n'])
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

test.each(['domain', 'static'])(
  'npm run drill: the %s service of npm start is backed up with the users, restored and compared',
  async (service) => {
    const cwd = createFolder({})
    symlinkSync(everything.dataDir, join(cwd, 'data'))
    await run('files', ['sync', createFolder({ 'a.txt': 'a', 'b.bin': 'b'.repeat(40_000) }), 'drill/'])

    const report = await promisify(execFile)(process.execPath, [join(root, 'scripts/drill.ts'), service, 'backups'], {
      cwd,
      env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE },
    }).catch((error) => error)

    expect([report.code, report.stderr, report.stdout]).toEqual([undefined, '', expect.not.stringContaining('FAILED')])
    expect(report.stdout).toMatch(/^ok {4} restore: [\s\S]*^ok {4} compare: as many rows, and the same contents$/m)
    const [snapshot = ''] = readdirSync(join(cwd, 'backups/snapshots'))
    expect(readdirSync(join(cwd, 'backups/snapshots', snapshot))).toContain('users.json')
  },
)

test('backup.ts: options stand before, between and after the arguments, and a check copies nothing over the data', async () => {
  const folder = join(createFolder({}), '1')
  const dataDir = createFolder({ 'registrar.json': 'today' })
  const all = { DATA_DIR: everything.dataDir }
  const one = (name: string) => ({
    DATA_DIR: join(everything.dataDir, `${name}-service`),
    USERS_FILE: join(everything.dataDir, 'users.json'),
  })

  const made = [
    await runBackup(all, 'backup', 'all', '--keep', '1', folder),
    await runBackup(one('domain'), 'backup', 'domain', join(folder, 'domain'), '--verify', '--keep=1'),
    await runBackup(one('static'), 'backup', '--keep', '1', 'static', join(folder, 'static')),
  ]
  const refused = [
    await runBackup(all, 'backup', 'all', '--keep', folder),
    await runBackup(all, 'backup', 'all', folder, 'other'),
  ]
  const help = await runBackup({}, 'backup', 'static', 'folder', '-h')
  const checked = await runBackup({ DATA_DIR: dataDir }, 'check', 'all', folder)

  expect(made.map(errorsOf)).toEqual([[], [], []])
  expect(refused.map(({ code }) => code)).toEqual([2, 2])
  expect(help.stdout).toMatch(/^Usage: npm run backup -- /)
  const kept = ['domain', 'static'].flatMap((name) => readdirSync(join(folder, name, 'snapshots')))
  expect(kept).toHaveLength(2)
  expect(readdirSync(folder)).toContain('admin-password')
  expect(errorsOf(checked)).toEqual([])
  expect(existsSync(join(folder, 'registrar.json'))).toBe(true)
  expect(readFileSync(join(dataDir, 'registrar.json'), 'utf8')).toBe('today')
})

const runBackup = (env: Record<string, string>, command: string, ...args: string[]) =>
  promisify(execFile)(process.execPath, [join(root, 'scripts/backup.ts'), command, ...args], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
  }).catch((error) => error)

/** What a command of backups wrote to standard error beside its progress, of which a slow machine sees more. */
const errorsOf = ({ stderr }: { stderr: string }) =>
  stderr.split('\n').filter((line) => line && !/^(?:copied|checked) \d+ of \d+ blobs, |^\d+ rows$/.test(line))
