import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Everything, neverLate, root, startEverything } from '../support/everything.ts'

const read = (file: string) => readFileSync(join(root, file), 'utf8')
const readme = read('README.md')

// Where each documented command is tested; the others are run by the tests below.
const testedBy: Record<string, string> = {
  'npm run tokens -- add domain certificates --owner admin --record _acme-challenge:TXT':
    'packages/auth/test/api-tokens/tokens-command.test.ts',
  'npm run tokens -- add domain terraform --owner admin --domains example.com --for registrar --url https://dns.example':
    'packages/auth/test/api-tokens/tokens-command.test.ts',
  'npm run tokens -- list domain': 'packages/auth/test/api-tokens/tokens-command.test.ts',
  'npm run trusts -- add deploy-site --issuer https://token.actions.githubusercontent.com --audience https://files.example.com --claim repository=acme/site --claim ref=refs/heads/main --role editor --folders site/':
    'packages/auth/test/trusts/trusts-command.test.ts',
  'npm start': 'test/e2e/start.test.ts',
  'npm run dev': 'test/e2e/start.test.ts',
  'npm test': 'this run',
  'npm run check': 'npm test',
  'npm run fix': 'npm test runs the check that it satisfies',
  'npm run test:browser': 'by hand: needs Chromium',
  'npm run test:containers': 'by hand: needs a container engine',
  'npm run test:install': 'by hand: needs a container engine and systemd',
  'npm run test:archives': 'by hand: installs archive tools, hugo and Chromium',
  'npm run test:integrations': 'by hand: installs ACME and dynamic DNS clients',
  'npm run test:proxy': 'by hand: installs nginx and Caddy',
  'npm run test:storages': 'by hand: takes six minutes',
  'npm run test:scale': 'by hand: installs nginx and PgBouncer',
  'npm run test:power': 'by hand: mounts file systems, and installs strace',
  'npm run faults': 'by hand: npm test runs the short form',
  'npm run bench': 'by hand: takes an hour',
  'docker compose up --build': 'test/e2e/run-containers',
  'docker compose -f docker-compose.scale.yml up --build': 'by hand: downloads images',
  'docker compose -f docker-compose.scale.yml up -d --build --no-deps domain-service-1': 'by hand: downloads images',
  'docker compose -f docker-compose.scale.yml exec nginx nginx -s reload': 'by hand: downloads images',
}

// Commands on containers (test/e2e/run-containers) and permissions for proxies (test/e2e/run-proxies).
const runByScripts = [
  /^docker compose (?:exec|cp|run) /,
  /^docker compose (?:-f \S+ )+up$/,
  /^node packages\/static-service\/src\/maintenance\/data-command/,
  /^(?:cd|mkdir|chgrp|find) /,
]

let everything: Everything
beforeAll(async () => {
  everything = await startEverything()
})
afterAll(() => everything[Symbol.asyncDispose]())

test('every documented command is run by a test', () => {
  const runHere = [
    /^(?:curl|export (?:REGISTRAR|DOMAINS)_|npx --no )/,
    /^(?:[A-Z0-9_]+=\S+ )*npm run (?:users|files|backup|restore) --/,
    ...runByScripts,
  ]

  const unknown = globSync(['README.md', 'CONTRIBUTING.md', 'docs/**/*.md'], { cwd: root })
    .flatMap((file) => commandsOf(read(file)))
    .filter((command) => !(command in testedBy) && !runHere.some((known) => known.test(command)))

  expect(unknown).toEqual([])
})

test('every npm script that the documents name exists', () => {
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(read('package.json'))

  const documents = readme + read('CONTRIBUTING.md') + read('docs/operations.md')
  const named = [...documents.matchAll(/(?:^|`)npm (?:run )?([a-z:]+)/gm)].map((match) => match[1] ?? '')

  const own = named.filter((name) => name !== 'pack') // npm's.
  expect(Object.keys(scripts)).toEqual(expect.arrayContaining(own))
})

test('the commands of the README work as pasted, after those that npm start prints', async () => {
  const commands = commandsOf(readme).filter((each) => /^(?:export|npx|curl) /.test(each))
  const place = (text: string) =>
    text
      .replaceAll('PASSWORD', everything.password)
      .replaceAll('http://127.0.0.1:3002', everything.files)
      .replace(/^export /gm, `export DOMAINS_URL=${everything.domains} FILES_URL=${everything.files} `)

  const printed = everything.text.slice(everything.text.indexOf('API='))
  await run(printed.slice(0, printed.indexOf('Ctrl-C')), { cwd: everything.dataDir })
  const before = await run('git status --porcelain')
  const tried = await run(
    place(commands.join('\n').replaceAll('_PASSWORD', '_SECRET')).replaceAll('_SECRET', '_PASSWORD'),
  )

  expect(commands).toHaveLength(8)
  expect(tried).toMatch(/would add .*www2.*added .*www2.*\+www2 A.*\/static\/readme\/README\.md.*# Domains/s)
  expect(await run('git status --porcelain')).toBe(before)
})

test('the commands that manage users work as pasted', async () => {
  const users = join(everything.dataDir, 'users.json')
  const managed: string[] = []
  for (const command of commandsOf(read('docs/users.md')).filter((each) => each.startsWith('npm run users'))) {
    const input = 'a password of alice\n' // Read to the end by the first command that asks for a password.
    managed.push(await run(command, { env: { USERS_FILE: users }, input }))
  }

  expect(managed).toHaveLength(4)
  expect(managed[3]).toMatch(/username=alice {2}role=viewer/)
  expect(JSON.parse(readFileSync(users, 'utf8')).users).toHaveLength(3)
})

test('after a wrong password the documented logins print the error', async () => {
  const files = ['scripts/start/examples/{domain,static}-service.sh']
  const logins = globSync(files, { cwd: root })
    .flatMap((file) => read(file).match(/^(?:API|FILES)=.*\nTOKEN=.*PASSWORD.*$/gm) ?? [])
    .map((login) =>
      login.replace('http://127.0.0.1:3001', everything.domains).replace('http://127.0.0.1:3002', everything.files),
    )

  const output = await run(`{ ${logins.join('\necho "token: $TOKEN."\n')}\n} 2>&1 | cat`)

  expect(logins).toHaveLength(2)
  expect(output.match(/^\{.*"code":"invalid_credentials".*\}$/gm)).toHaveLength(2)
  expect(output.match(/^token: \.$/gm)).toHaveLength(1)
})

test('the backup and restore commands of docs/operations.md work as pasted', async () => {
  const { dataDir } = everything
  const commands = commandsOf(read('docs/operations.md'))
    .filter((command) => /npm run (?:backup|restore)/.test(command))
    .map((command) => inFolder(command, dataDir))

  const output = await run(commands.join('\n'))

  expect(commands).toHaveLength(3)
  expect(output.match(/every byte compared/g)).toHaveLength(2)
  expect(globSync('restored/*', { cwd: dataDir })).toContain('restored/static-service.sqlite')
})

test('the documented variables suffice for a registrar of your own, in production too', async () => {
  const names = [...blockWith('REGISTRAR_URL').matchAll(/export ([A-Z_]+)=/g)].map((match) => match[1])
  const values: Record<string, string> = {
    REGISTRAR_URL: `${everything.sandbox}/xml.response`,
    REGISTRAR_API_USER: 'sandbox',
    REGISTRAR_API_KEY: 'sandbox-key-for-development-only',
    REGISTRAR_CLIENT_IP: '127.0.0.1',
  }
  const service = spawn(process.execPath, ['packages/domain-service/dist/main.js'], {
    cwd: root,
    env: {
      PATH: process.env.PATH,
      NODE_OPTIONS: neverLate,
      ...Object.fromEntries(names.map((name = '') => [name, values[name]])),
      NODE_ENV: 'production',
      PORT: '0',
      DATA_DIR: join(everything.dataDir, 'production'),
      USERS_FILE: join(everything.dataDir, 'users.json'),
      JWT_SECRET: 'a secret of this test that is long enough',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(async () => {
    if (service.kill()) await once(service, 'exit')
  })
  const [, url = ''] = /(http:\/\/127\.0\.0\.1:\d+)/.exec(await readListening(service)) ?? []

  const login = await fetch(`${url}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'admin', password: everything.password }),
  })
  const { access_token }: { access_token: string } = JSON.parse(await login.text())
  const list = await fetch(`${url}/api/domains`, {
    headers: { authorization: `Bearer ${access_token}` },
  })

  expect(list.status).toBe(200)
})

// Fenced `sh` blocks are commands for any machine; `bash` blocks need root and systemd.
const blocksOf = (text: string) =>
  [...text.matchAll(/^( *)```sh\n(.*?)^ *```/gms)].map(([, indent = '', block = '']) =>
    block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  )

// The same commands on a test's directories.
const inFolder = (commands: string, dataDir: string) =>
  commands
    .replaceAll('backups/', `${dataDir}/backups/`)
    .replaceAll(/^DATA_DIR=\S+ npm run restore/gm, `DATA_DIR=${dataDir}/restored npm run restore`)
    .replaceAll(/^npm run backup -- (\w+)/gm, `DATA_DIR=${dataDir}/$1-service npm run backup -- $1`)

const commandsOf = (text: string) =>
  blocksOf(text).flatMap((block) =>
    block
      .replace(/\\\n\s*/g, '')
      .split('\n')
      .flatMap((line) => line.replace(/\s+# .*$/, '').trim() || []),
  )

const blockWith = (start: string) => blocksOf(read('docs/registrar.md')).find((block) => block.includes(start)) ?? ''

async function run(
  lines: string,
  { env = {}, input = '', cwd = root }: { env?: Record<string, string>; input?: string; cwd?: string } = {},
) {
  const running = promisify(execFile)('bash', ['-euo', 'pipefail', '-c', lines], {
    cwd,
    env: { ...process.env, ...env },
  })
  running.child.stdin?.end(input)
  return (await running).stdout
}

async function readListening({ stdout }: ReturnType<typeof spawn>): Promise<string> {
  let text = ''
  for await (const chunk of stdout ?? []) {
    text += chunk
    if (text.includes('listening')) return text
  }
  return text
}
