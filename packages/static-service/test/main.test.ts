import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../src/config.ts'
import { run } from './support/program.ts'

const makeFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), 'static-process-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const startOnly = (env: Record<string, string>) =>
  spawnSync(process.execPath, [join(import.meta.dirname, '../dist/main.js')], {
    env: { PATH: process.env.PATH, PORT: '0', LOG_LEVEL: 'silent', ...env },
    encoding: 'utf8',
  })

test.each([['SIGTERM'], ['SIGINT']] as const)(
  '%s ends the service in order, with all that was stored',
  async (signal) => {
    const dataDir = makeFolder()
    const first = await run(dataDir)
    const token = await first.logIn()
    await first.send(token, 'upload', [{ name: 'file', content: 'kept', filename: 'a.txt' }])

    first.child.kill(signal)
    const [code] = await once(first.child, 'exit')

    expect(code).toBe(0)
    const second = await run(dataDir)
    onTestFinished(() => second.kill())
    const { bytes } = await second.ask({ method: 'GET', path: '/static/a.txt', headers: {} })
    expect(bytes.toString()).toBe('kept')
  },
)

test.each(['/api/files/?prefix=%ff', '/api/files/?search=%ff', '/api/files/tree?prefix=%ff'])(
  'the bundled program refuses %s, as the sources do',
  async (path) => {
    const program = await run(makeFolder())
    onTestFinished(() => program.kill())
    const headers = { authorization: `Bearer ${await program.logIn()}` }

    const { status, body } = await program.ask({ method: 'GET', path, headers })

    expect([status, body.code]).toEqual([400, 'invalid_path'])
  },
)

test('a folder belongs to one process', async () => {
  const dataDir = makeFolder()
  const first = await run(dataDir)
  onTestFinished(() => first.kill())

  const second = startOnly({ DATA_DIR: dataDir })

  expect([second.status, second.stderr]).toEqual([1, `Another process is using ${dataDir}: stop it first.\n`])
})

test('every fault of the environment is named at once', () => {
  const { status, stderr } = startOnly({
    DATA_DIR: makeFolder(),
    MAX_UPLOAD_BYTES: '0',
    MAX_BATCH_FILES: 'many',
    QUOTA_BYTES: '-1',
    PUBLIC_BASE_URL: 'ftp://example.com',
    STATIC_INDEX: 'a/b',
    STATIC_CSP: 'line\nbreak',
  })

  expect(status).toBe(1)
  const names = stderr.split('\n').flatMap((line) => /^ {2}- ([A-Z_]+):/.exec(line)?.[1] ?? [])
  expect(names).toEqual([
    'PUBLIC_BASE_URL',
    'MAX_UPLOAD_BYTES',
    'MAX_BATCH_FILES',
    'QUOTA_BYTES',
    'STATIC_INDEX',
    'STATIC_CSP',
  ])
})

test('without any variable the defaults of the contract are in force', () => {
  expect(readConfig({})).toMatchObject({
    host: '127.0.0.1',
    port: 3002,
    dataDir: 'data/static-service',
    maxUploadBytes: 1_073_741_824,
    maxBatchFiles: 100,
    catalog: { quotaBytes: undefined },
    static: {
      cacheControl: 'public, max-age=0, must-revalidate',
      index: undefined,
      csp: "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
    },
  })
})

test('who hosts pages can turn the sandbox off', () => {
  expect(readConfig({ STATIC_CSP: 'off' }).static.csp).toBeUndefined()
})
