import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { exampleSecret } from '../../packages/auth/src/tokens/jwt-secret.ts'
import { Settings as DomainSettings } from '../../packages/domain-service/src/config.ts'
import { Settings as StaticSettings } from '../../packages/static-service/src/config.ts'
import { root, startEverything } from '../support/everything.ts'

const read = (file: string) => readFileSync(join(root, file), 'utf8')
const readme = read('README.md')

// Where a command of the documents is run; those of this file are run below.
const runBy: Record<string, string> = {
  'npm start': 'test/e2e/start.test.ts',
  'npm run dev': 'test/e2e/start.test.ts',
  'npm test': 'this very run',
  'npm run check': 'npm test',
  'npm run fix': 'its check is run by npm test',
  'npm run test:browser': 'by hand: it needs Chromium',
  'npm run test:containers': 'by hand: it needs an engine',
  'npm run test:proxy': 'by hand: it installs nginx and Caddy',
  'npm run faults': 'by hand: its short form is in npm test',
  'npm run bench': 'by hand: it takes an hour',
  'docker compose up --build': 'test/e2e/run-containers',
}

// Commands that act on containers, which test/e2e/run-containers runs, and the rights of docs/proxy.md, which test/e2e/run-proxies sets.
const runByTrials = [
  /^docker compose (?:exec|cp|run) /,
  /^node packages\/static-service\/src\/maintenance\/data-command/,
  /^(?:cd|mkdir|chgrp|find) /,
]

test('every command of the documents is run by a test', () => {
  const runHere = [
    /^(?:curl|API=|FILES=|TOKEN=|export REGISTRAR_)/,
    /^(?:DATA_DIR=\S+ )?npm run (?:users|files|backup|restore) --/,
    ...runByTrials,
  ]

  const unknown = globSync(['README.md', 'docs/**/*.md'], { cwd: root })
    .flatMap((file) => commandsOf(read(file)))
    .filter((command) => !(command in runBy) && !runHere.some((known) => known.test(command)))

  expect(unknown).toEqual([])
})

test('every script that the documents name is there', () => {
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(read('package.json'))

  const named = [...readme.matchAll(/(?:^|`)npm (?:run )?([a-z:]+)/gm)].map(
    (match) => match[1] ?? '',
  )

  expect(Object.keys(scripts)).toEqual(expect.arrayContaining(named))
})

test('the commands to try the services, their users and their files work as they stand', async () => {
  await using everything = await startEverything()
  const users = join(everything.dataDir, 'users.json')
  const tries = blocksOf(readme).filter((block) => /^(?:API|FILES)=/.test(block))
  const place = (block: string) =>
    block
      .replaceAll('PASSWORD', everything.password)
      .replace('http://127.0.0.1:3001', everything.domains)
      .replace('http://127.0.0.1:3002', everything.files)

  const tried = await run(tries.map(place).join('\n'))
  const managed: string[] = []
  for (const command of commandsOf(readme).filter((each) => each.startsWith('npm run users'))) {
    const input = 'a password of alice\n' // Read to its end by the first command that asks.
    managed.push(await run(command, { env: { USERS_FILE: users }, input }))
  }
  const checked = await run(
    inFolder(blockWith('npm run files --'), everything.dataDir).replace(
      'npm run files',
      `DATA_DIR=${everything.dataDir}/static-service npm run files`,
    ),
  )

  expect(tries).toHaveLength(2)
  expect(tried).toMatch(
    /"domains":\[.*"name":"hello".*"history":\[.*"path":"docs\/README.md".*# Domains/s,
  )
  expect(tried).not.toContain('"code"')
  expect(managed).toHaveLength(5)
  expect(managed[1]).toMatch(/alice +editor/)
  expect(JSON.parse(readFileSync(users, 'utf8')).users).toHaveLength(1)
  expect(checked).toContain('1 files, 1 contents')
}, 60_000)

test('the backups of docs/operations.md are made and restored as they stand', async () => {
  await using everything = await startEverything()
  const { dataDir } = everything
  const commands = commandsOf(read('docs/operations.md'))
    .filter((command) => /npm run (?:backup|restore)/.test(command))
    .map((command) => inFolder(command, dataDir))

  const told = await run(commands.join('\n'))

  expect(commands).toHaveLength(3)
  expect(told.match(/every byte compared/g)).toHaveLength(2)
  expect(globSync('restored/*', { cwd: dataDir })).toContain('restored/static-service.sqlite')
}, 60_000)

test('the variables for a real registrar are all that is needed, in production too', async () => {
  await using everything = await startEverything()
  const names = [...blockWith('REGISTRAR_URL').matchAll(/export ([A-Z_]+)=/g)].map(
    (match) => match[1],
  )
  const values: Record<string, string> = {
    REGISTRAR_URL: `${everything.sandbox}/xml.response`,
    REGISTRAR_API_USER: 'sandbox',
    REGISTRAR_API_KEY: 'sandbox-key-for-development-only',
    REGISTRAR_CLIENT_IP: '127.0.0.1',
  }
  const service = spawn(process.execPath, ['packages/domain-service/src/main.ts'], {
    cwd: root,
    env: {
      PATH: process.env.PATH,
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
}, 60_000)

test('the settings are told with their defaults, in the README and in .env.example', () => {
  const examples = [...read('.env.example').matchAll(/^([A-Z_]+)=(.*)$/gm)].map(
    ([, name = '', value = '']) => [name, value === exampleSecret ? '' : value],
  )
  const told = rowsOf('## Settings', '## Errors').map(([name = '', value = '']) => [
    name.replaceAll('`', ''),
    value.replaceAll('`', ''),
  ])
  const shapes = { ...StaticSettings.shape, ...DomainSettings.shape }
  const wrong = examples.filter(([name = '', value]) => {
    const rule = Object.entries(shapes).find(([known]) => known === name)?.[1]
    const [fallback, example] = [rule?.safeParse(undefined), rule?.safeParse(value || undefined)]
    return JSON.stringify(fallback) !== JSON.stringify(example)
  })

  expect(told).toEqual(examples)
  expect(examples.map(([name]) => name).sort()).toEqual(Object.keys(shapes).sort())
  expect(wrong).toEqual([])
})

test('the error codes are told with their status, and no others', () => {
  const sources = globSync('packages/{auth,http,domain-service,static-service}/src/**/*.ts', {
    cwd: root,
  })
  const thrown = sources.flatMap((file) =>
    [
      ...read(file).matchAll(
        /\b([45]\d\d)[,:]\s*'([a-z]+(?:_[a-z]+)+|unauthorized|forbidden|unavailable)'/g,
      ),
    ].map(([, status, code]) => `${code} ${status}`),
  )
  const told = rowsOf('## Errors', '## Operations').flatMap(([codes = '', statuses = '']) => {
    const each = codes.replaceAll('`', '').split(', ')
    const known = statuses.split(', ')
    return each.map((code) => ({ code, known }))
  })

  expect(told.map(({ code }) => code).sort()).toEqual(
    [...new Set(thrown.map((each) => each.split(' ')[0]))].sort(),
  )
  for (const { code, known } of told) {
    expect(known.some((status) => thrown.includes(`${code} ${status}`))).toBe(true)
  }
})

// The fenced blocks that are marked as shell.
const blocksOf = (text: string) =>
  [...text.matchAll(/^( *)```sh\n(.*?)^ *```/gms)].map(([, indent = '', block = '']) =>
    block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  )

// The same commands, on the folders of a test.
const inFolder = (commands: string, dataDir: string) =>
  commands
    .replaceAll('backups/', `${dataDir}/backups/`)
    .replaceAll(/^DATA_DIR=\S+ npm run restore/gm, `DATA_DIR=${dataDir}/restored npm run restore`)
    .replaceAll(/^npm run backup -- (\w+)/gm, `DATA_DIR=${dataDir}/$1-service npm run backup -- $1`)

const commandsOf = (text: string) =>
  blocksOf(text).flatMap((block) =>
    block.split('\n').flatMap((line) => line.replace(/\s+# .*$/, '').trim() || []),
  )

const blockWith = (start: string) => blocksOf(readme).find((block) => block.includes(start)) ?? ''

// The cells of the tables between two headings, but for their heads.
const rowsOf = (start: string, end: string) =>
  readme
    .slice(readme.indexOf(start), readme.indexOf(end))
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) =>
      line
        .split('|')
        .map((cell) => cell.trim())
        .slice(1, -1),
    )

async function run(
  lines: string,
  { env = {}, input = '' }: { env?: Record<string, string>; input?: string } = {},
) {
  const running = promisify(execFile)('bash', ['-euo', 'pipefail', '-c', lines], {
    cwd: root,
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
