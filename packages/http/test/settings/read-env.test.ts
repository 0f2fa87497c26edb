import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { followSecret, integerSetting, named, readEnv, serverSettings } from '../../src/index.ts'
import { defaultLimits } from '../../src/limits/connections.ts'

const schema = z.object({
  ...serverSettings({ port: 3001, dataDir: 'data' }),
  JWT_SECRET: z.string().optional(),
})

test('an empty environment gives the defaults', () => {
  expect(readEnv(schema, { CORS_ORIGIN: '', PORT: '' })).toMatchObject({
    HOST: '127.0.0.1',
    PORT: 3001,
    LOG_LEVEL: 'info',
    TRUST_PROXY: false,
    CORS_ORIGIN: [],
  })
})

test('an app takes the limits of its connections from the settings, whose names are theirs', () => {
  const { sliceMs, maxQueueMs, maxQueued, maxLoopDelayMs, ...limits } = defaultLimits

  expect(named(readEnv(schema, {}))).toMatchObject(limits)
})

test.each([
  ['https://a.example, http://127.0.0.1:3000', true],
  ['capacitor://localhost', true],
  ['https://a.example/', false],
  ['https://A.example', false],
  ['a.example', false],
  ['*', false],
])('CORS_ORIGIN=%s is valid: %s', (list, isValid) => {
  const read = () => readEnv(schema, { CORS_ORIGIN: list })

  if (isValid) expect(read().CORS_ORIGIN).toEqual(list.split(', '))
  else expect(read).toThrow('CORS_ORIGIN: must be origins such as')
})

test('every fault of the environment is named, no value is', () => {
  const read = () =>
    readEnv(schema, {
      PORT: 'eighty',
      LOG_LEVEL: 'loud',

      JWT_SECRET_FILE: '/nowhere',
    })

  expect(read).toThrow(
    /- JWT_SECRET_FILE: cannot be read by this process, of user \d+ \(ENOENT\)\n.*- PORT: .*\n.*- LOG_LEVEL: .*/,
  )
  expect(read).not.toThrow(/eighty|loud/)
})

test.each([
  ...['JWT_SECRET', 'JWT_SECRET_PREVIOUS', 'ADMIN_PASSWORD', 'OIDC_CLIENT_SECRET', 'METRICS_TOKEN'],
  ...['REGISTRAR_API_KEY', 'DATABASE_URL', 'DATABASE_DIRECT_URL'],
  ...['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'],
])('%s may come from a file', (name) => {
  const folder = mkdtempSync(join(tmpdir(), 'env-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'secret'), 'from-a-file\n')
  const settings = z.object({ [name]: z.string() })

  const read = readEnv(settings, { [`${name}_FILE`]: join(folder, 'secret') })

  expect(read).toEqual({ [name]: 'from-a-file' })
})

test('a secret that is followed is that of its file, and the last one where there is none', () => {
  const folder = mkdtempSync(join(tmpdir(), 'env-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'token')
  writeFileSync(file, 'first\n')
  const read = followSecret('METRICS_TOKEN', { METRICS_TOKEN_FILE: file }, 'first')

  expect(read()).toBe('first')
  writeFileSync(file, 'the second\n')
  expect(read()).toBe('the second')
  writeFileSync(file, '')
  expect(read()).toBe('the second')
  rmSync(file)
  expect(read()).toBe('the second')
  writeFileSync(file, 'third')
  expect(read()).toBe('third')
  expect(followSecret('METRICS_TOKEN', { METRICS_TOKEN: 'a' }, 'a')()).toBe('a')
})

test.each([
  ['true', true],
  ['false', false],
  ['10.0.0.0/8, 127.0.0.1', ['10.0.0.0/8', '127.0.0.1']],
])('TRUST_PROXY=%s', (text, expected) => {
  expect(readEnv(schema, { TRUST_PROXY: text }).TRUST_PROXY).toEqual(expected)
})

test('TRUST_PROXY=1 believes the nearest hop only', () => {
  const trust = readEnv(schema, { TRUST_PROXY: '1' }).TRUST_PROXY

  const believes = typeof trust === 'function' ? [trust('a', 0), trust('b', 1)] : []
  expect(believes).toEqual([true, false])
})

test.each([
  ['MAX_CONECTIONS', 'MAX_CONNECTIONS'],
  ['MAX_CONNECTIONSS', 'MAX_CONNECTIONS'],
  ['MAX_CONNECTOINS', 'MAX_CONNECTIONS'],
  ['MAX_KONNECTIONS', 'MAX_CONNECTIONS'],
  ['MAXCONNECTIONS', 'MAX_CONNECTIONS'],
  ['JWT_SECRT', 'JWT_SECRET'],
])('%s is warned about: it is nearly %s', (name, setting) => {
  const warn = vi.spyOn(process, 'emitWarning').mockReturnValue()
  onTestFinished(() => warn.mockRestore())

  readEnv(schema, { [name]: 'a value' })

  expect(warn).toHaveBeenCalledExactlyOnceWith(`${name} is not a setting: did you mean ${setting}?`)
})

test.each([
  ['a setting', { MAX_CONNECTIONS: '5', JWT_SECRET_FILE: '/nowhere' }],
  ['an empty variable', { MAX_CONECTIONS: '' }],
  ['a variable of the system', { HOME: '/', HOSTNAME: 'a', PATH: '/bin', PORTS: '1', POST: '1' }],
  ['another one', { MAX_UPLOAD_BYTES: '1', DATA: 'a', NODE_ENVIRONMENT: 'b' }],
])('%s is not warned about', (_what, env) => {
  const warn = vi.spyOn(process, 'emitWarning').mockReturnValue()
  onTestFinished(() => warn.mockRestore())

  let refusal = ''
  try {
    readEnv(schema, env)
  } catch (error) {
    refusal = String(error) // A file that cannot be read.
  }

  expect(warn).not.toHaveBeenCalled()
  expect(refusal).not.toContain('did you mean')
})

test('a refused environment names what is misspelt with what is wrong', () => {
  const env = { PORT: 'x', MAX_CONECTIONS: '5' }

  expect(() => readEnv(schema, env)).toThrow(
    /PORT: .*\n {2}- MAX_CONECTIONS is not a setting: did you mean MAX_CONNECTIONS\?/,
  )
})

test('a refusal lists the faults of settings and those between them', () => {
  const schema = z.object({
    PORT: integerSetting(1),
    ISSUER: z.string(),
    CLIENT: z.string().optional(),
  })
  const rule = (settings: z.output<typeof schema>) => ({
    CLIENT: settings.ISSUER && !settings.CLIENT && 'is required with ISSUER',
  })

  expect(() => readEnv(schema, { PORT: 'x', ISSUER: 'a' }, rule)).toThrow(
    /PORT: must be a whole number of at least 1\n {2}- CLIENT: is required with ISSUER$/,
  )
  expect(readEnv(schema, { PORT: '1', ISSUER: 'a', CLIENT: 'b' }, rule)).toMatchObject({ PORT: 1 })
})
