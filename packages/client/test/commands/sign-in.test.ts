import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

// The commands against a service that answers as the real ones do, which packages/auth tests.

const folder = mkdtempSync(join(tmpdir(), 'sign-in-'))
const server = createServer(async (request, response) => {
  const url = new URL(request.url ?? '/', baseUrl)
  const body = await text(request)
  requests.push({ path: url.pathname, body, authorization: request.headers.authorization })
  const answer = (status: number, json: object, headers = {}) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(json))
  const query = (name: string) => url.searchParams.get(name) ?? ''
  if (url.pathname === '/password-only/api/auth/methods') return answer(200, { password: true, oidc: null })
  if (url.pathname === '/api/auth/methods') return answer(200, { password: true, oidc: { name: 'Test ID' } })
  if (url.pathname === '/api/auth/oidc/login') {
    challenge = query('challenge')
    return answer(302, {}, { location: `${query('return_to')}?code=the-code` })
  }
  if (url.pathname === '/api/auth/oidc/token') {
    const { code, verifier } = JSON.parse(body)
    const isRight = createHash('sha256').update(verifier).digest('base64url') === challenge
    if (code !== 'the-code' || !isRight) return answer(401, {})
    const user = { username: 'oidc:alice', role: 'editor' }
    return answer(200, { user, access_token: 'of-sso', token_type: 'Bearer', expires_in: 3600 })
  }
  if (url.pathname === '/github-refuses') return answer(403, {})
  if (url.pathname === '/github') return answer(200, { value: `job ${query('audience')} ${query('api-version')}` })
  if (url.pathname === '/api/auth/token') {
    const refused = { error: 'invalid_grant', error_description: 'No trust admits this token' }
    const token = new URLSearchParams(body).get('subject_token')
    if (token === 'refused') return answer(400, refused)
    if (token === 'empty') return response.writeHead(400).end()
    if (token === 'of a proxy') return response.writeHead(400, { 'content-type': 'text/html' }).end('<h1>No</h1>')
    return answer(200, { access_token: 'of-job', token_type: 'Bearer', expires_in: 900 })
  }
  return answer(200, { files: [], domains: [], pagination: { total_pages: 1 } })
})
let challenge = ''
let baseUrl = 'http://127.0.0.1'
const requests: { path: string; body: string; authorization: string | undefined }[] = []

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address !== null && typeof address === 'object') baseUrl = `http://127.0.0.1:${address.port}`
  const browser = `#!/bin/sh\nexec "${process.execPath}" -e 'fetch(process.argv[1])' "$1"\n`
  writeFileSync(join(folder, 'browser'), browser, { mode: 0o755 })
})
afterAll(() => {
  server.close()
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  requests.length = 0
})

const files = (args: string[], env?: Record<string, string>) => run('files', args, env)

async function run(name: 'files' | 'domains', args: string[], env: Record<string, string> = {}) {
  const program = join(import.meta.dirname, `../../src/commands/${name}.ts`)
  const surroundings = {
    PATH: process.env.PATH,
    FILES_URL: `${baseUrl}/`,
    DOMAINS_URL: baseUrl,
    XDG_CONFIG_HOME: folder,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    ...env,
  }
  const running = promisify(execFile)(process.execPath, [program, ...args], { env: surroundings })
  return running.then(({ stdout }) => ({ code: 0, stdout, stderr: '' })).catch((error) => error)
}
const authorizations = () => requests.flatMap(({ authorization }) => authorization ?? [])

test('login --sso opens a browser, and later commands use the token, which only its user can read', async () => {
  const { stdout } = await files(['login', '--sso'], { BROWSER: join(folder, 'browser') })
  const listed = await files(['list'])

  expect(stdout).toBe('Logged in as oidc:alice for 60 minutes.\n')
  expect(listed.code).toBe(0)
  expect(authorizations()).toEqual(['Bearer of-sso'])
  const file = join(folder, 'domains-and-files/tokens.json')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ [baseUrl]: { token: 'of-sso' } })
})

test('login --sso says at once that a service has no single sign-on, or does not answer', async () => {
  const browser = { BROWSER: join(folder, 'browser') }
  const [none, away] = [`${baseUrl}/password-only`, 'http://127.0.0.1:1']

  const refused = await files(['login', '--sso'], { ...browser, FILES_URL: none })
  const missed = await files(['login', '--sso'], { ...browser, FILES_URL: away })

  const advice = 'There is no single sign-on here: set FILES_USERNAME or FILES_TOKEN.\n'
  expect(refused).toMatchObject({ code: 1, stderr: advice })
  expect(missed).toMatchObject({ code: 1, stderr: expect.stringContaining('cannot be reached') })
})

test('a service that does not answer is named, with the setting of its address', async () => {
  const url = 'http://127.0.0.1:1'

  const { code, stderr } = await files(['list'], { FILES_URL: url, FILES_TOKEN: 'x' })

  expect(code).toBe(1)
  expect(stderr).toMatch(/^The service cannot be reached at http:\/\/127\.0\.0\.1:1 \(FILES_URL\): .+\n$/)
})

test('in a job of GitHub its token is exchanged', async () => {
  const env = {
    ACTIONS_ID_TOKEN_REQUEST_URL: `${baseUrl}/github?api-version=2.0`,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'secret of the job',
  }

  expect((await files(['list'], env)).code).toBe(0)

  expect(authorizations()).toEqual(['Bearer secret of the job', 'Bearer of-job'])
  const form = new URLSearchParams(requests.find(({ path }) => path === '/api/auth/token')?.body)
  expect(Object.fromEntries(form)).toEqual({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: `job ${baseUrl} 2.0`,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  })
})

test('a job of GitHub that gets no token says so in one line', async () => {
  const env = {
    ACTIONS_ID_TOKEN_REQUEST_URL: `${baseUrl}/github-refuses`,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'secret of the job',
  }

  const { code, stderr } = await files(['list'], env)

  expect([code, stderr]).toEqual([1, 'GitHub offers this job no token: 403\n'])
})

test('in a job of GitLab the token that it offers is exchanged once for all commands, and a refusal is said', async () => {
  for (const _command of [1, 2]) expect((await files(['list'], { FILES_ID_TOKEN: 'of gitlab' })).code).toBe(0)
  expect(authorizations()).toEqual(['Bearer of-job', 'Bearer of-job'])
  expect(requests.filter(({ path }) => path === '/api/auth/token')).toHaveLength(1)

  const refused = await files(['list'], { FILES_ID_TOKEN: 'refused' })

  expect([refused.code, refused.stderr]).toEqual([1, 'No trust admits this token (invalid_grant)\n'])
})

test.each(['empty', 'of a proxy'])('a 400 to an exchange that is %s is described by its status', async (token) => {
  const { code, stderr } = await files(['list'], { FILES_ID_TOKEN: token })

  expect([code, stderr]).toEqual([1, 'The server responded with 400 Bad Request (unexpected_response)\n'])
})

test('domains logs in and exchanges tokens of jobs, too, by its own variables', async () => {
  const github = {
    ACTIONS_ID_TOKEN_REQUEST_URL: `${baseUrl}/github`,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'secret of the job',
  }
  const domains = (args: string[], env = {}) =>
    run('domains', args, { XDG_CONFIG_HOME: join(folder, 'domains'), ...env })
  const answers = [
    await domains(['login', '--sso'], { BROWSER: join(folder, 'browser') }),
    await domains(['list']),
    await domains(['list'], { ...github, DOMAINS_AUDIENCE: 'https://domains.test' }),
    await domains(['list'], { DOMAINS_ID_TOKEN: 'for domains' }),
  ]

  expect(answers.map(({ code }) => code)).toEqual([0, 0, 0, 0])
  const used = ['Bearer of-sso', 'Bearer secret of the job', 'Bearer of-job', 'Bearer of-job']
  expect(authorizations()).toEqual(used)
  const exchanged = requests.filter(({ path }) => path === '/api/auth/token')
  expect(exchanged.map(({ body }) => new URLSearchParams(body).get('subject_token'))).toEqual([
    'job https://domains.test ',
    'for domains',
  ])
})

test('a token of the environment counts before all others', async () => {
  await files(['list'], { FILES_TOKEN: 'given', FILES_ID_TOKEN: 'of gitlab' })

  expect(authorizations()).toEqual(['Bearer given'])
})

test('without credentials the command says how to get some', async () => {
  const { code, stderr } = await files(['list'], { XDG_CONFIG_HOME: join(folder, 'empty') })

  expect([code, stderr]).toEqual([1, expect.stringMatching(/^Set FILES_TOKEN.* files login --sso\.\n$/)])
})
