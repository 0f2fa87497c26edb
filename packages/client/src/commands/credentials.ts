import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import createClient from 'openapi-fetch'
import type { paths } from '../../generated/static-service.d.ts'
import { ProblemError, unwrap } from '../responses.ts'
import type { Credentials } from '../session.ts'
import { CommandError, UsageError } from './terminal.ts'

/** A service: the prefix of its environment variables, and its address without a trailing slash. */
interface Service {
  /** `DOMAINS` or `FILES`. */
  prefix: string
  baseUrl: string
}

/**
 * Finds credentials, in this order: `<PREFIX>_TOKEN`; `<PREFIX>_USERNAME` and `<PREFIX>_PASSWORD` (prompts if missing);
 * the job token of GitHub or GitLab; the last `login --sso`.
 */
export async function readCredentials(service: Service): Promise<Credentials> {
  const { prefix } = service
  const token = process.env[`${prefix}_TOKEN`]
  if (token) return { token }
  const username = process.env[`${prefix}_USERNAME`]
  if (username) return { username, password: await readPassword(prefix, username) }
  const obtain = findWorkload(service)
  if (obtain) return { obtain }
  const stored = await findToken(service.baseUrl)
  if (stored) return { token: stored }
  throw new CommandError(`Set ${prefix}_TOKEN, or ${prefix}_USERNAME, or log in: ${prefix.toLowerCase()} login --sso.`)
}

async function readPassword(prefix: string, username: string): Promise<string> {
  const password = process.env[`${prefix}_PASSWORD`] ?? (await askPassword(`Password of ${username}: `))
  if (password === undefined) throw new CommandError(`Set ${prefix}_PASSWORD or ${prefix}_TOKEN.`)
  return password
}

/** One line of standard input, without echo at a terminal; undefined at its end. */
async function askPassword(question: string): Promise<string | undefined> {
  process.stderr.write(question)
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const { stdin } = process
  const lines = createInterface({ input: stdin, output: silent, terminal: stdin.isTTY })
  try {
    return (await lines[Symbol.asyncIterator]().next()).value
  } finally {
    lines.close()
    process.stderr.write('\n')
  }
}

/** Returns a function that exchanges this CI job's own token for one of the service; undefined outside of such jobs. */
function findWorkload(service: Service): (() => Promise<string>) | undefined {
  const { ACTIONS_ID_TOKEN_REQUEST_URL: url, ACTIONS_ID_TOKEN_REQUEST_TOKEN: secret } = process.env
  const ofJob = process.env[`${service.prefix}_ID_TOKEN`]
  if (ofJob) return () => exchangeOnce(service, ofJob)
  if (!url || !secret) return undefined
  const audience = process.env[`${service.prefix}_AUDIENCE`] || service.baseUrl
  return async () => {
    const request = new URL(url)
    request.searchParams.set('audience', audience)
    const response = await fetch(request, { headers: { authorization: `Bearer ${secret}` } })
    if (!response.ok) throw new CommandError(`GitHub offers this job no token: ${response.status}`)
    const { value } = (await response.json()) as { value: string } // As GitHub documents.
    return (await exchange(service, value)).token
  }
}

// Cached: all commands of a GitLab job have the same token, and the service exchanges each token only once.
async function exchangeOnce(service: Service, ofJob: string): Promise<string> {
  const key = `job ${createHash('sha256').update(`${service.baseUrl} ${ofJob}`).digest('hex')}`
  const known = await findToken(key)
  if (known) return known
  const { token, expiresIn } = await exchange(service, ofJob)
  await storeToken(key, token, expiresIn)
  return token
}

/** Token exchange (RFC 8693). */
async function exchange({ baseUrl }: Service, subjectToken: string) {
  const { data, error, response } = await createClient<paths>({ baseUrl }).POST('/api/auth/token', {
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: subjectToken,
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    },
  })
  if (data) return { token: data.access_token, expiresIn: data.expires_in }
  // The body of a proxy's error can be anything, or empty.
  if (typeof error !== 'object' || !('error_description' in error)) throw ProblemError.of(error, response)
  throw new ProblemError({ status: response.status, code: 'invalid_grant', detail: String(error.error_description) })
}

type StoredTokens = Record<string, { token: string; expires_at: string }>

const tokensFile = () =>
  join(process.env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'domains-and-files', 'tokens.json')

async function readTokens(): Promise<StoredTokens> {
  try {
    return JSON.parse(await readFile(tokensFile(), 'utf8'))
  } catch {
    return {} // No login yet, or a file that the next login replaces.
  }
}

async function findToken(key: string): Promise<string | undefined> {
  const stored = (await readTokens())[key]
  return stored && Date.parse(stored.expires_at) > Date.now() ? stored.token : undefined
}

/** Stores a token in a file that only this user can read. Key of a login: the service's address. `expiresIn`: seconds. */
async function storeToken(key: string, token: string, expiresIn: number) {
  const file = tokensFile()
  const expires_at = new Date(Date.now() + expiresIn * 1000).toISOString()
  const tokens = { ...(await readTokens()), [key]: { token, expires_at } }
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const temporary = `${file}.${process.pid}.tmp`
  await writeFile(temporary, `${JSON.stringify(tokens, null, 2)}\n`, { mode: 0o600 })
  await rename(temporary, file)
}

const waitMs = 300_000

/**
 * Logs in by single sign-on: the browser is redirected to a loopback port with a code, which only this process can
 * exchange (RFC 8252, 7.3; RFC 7636). Later commands use the token until it expires.
 */
export async function logIn({ baseUrl, prefix }: Service, isSso: boolean): Promise<void> {
  if (!isSso) throw new UsageError('Add --sso; for a password set variables instead.')
  const api = createClient<paths>({ baseUrl })
  const { oidc } = await unwrap(api.GET('/api/auth/methods'))
  if (!oidc) throw new CommandError(`There is no single sign-on here: set ${prefix}_USERNAME or ${prefix}_TOKEN.`)
  const verifier = randomBytes(32).toString('base64url')
  const code = await receiveCode(baseUrl, createHash('sha256').update(verifier).digest('base64url'))
  const login = await unwrap(api.POST('/api/auth/oidc/token', { body: { code, verifier } }))
  await storeToken(baseUrl, login.access_token, login.expires_in)
  process.stdout.write(`Logged in as ${login.user.username} for ${Math.floor(login.expires_in / 60)} minutes.\n`)
}

async function receiveCode(baseUrl: string, challenge: string): Promise<string> {
  const server = createServer((request, response) => {
    const code = new URL(request.url ?? '/', 'http://127.0.0.1').searchParams.get('code')
    response.writeHead(code ? 200 : 404, { 'content-type': 'text/plain', connection: 'close' })
    response.end(code ? 'Go on at the terminal: you can close this page.\n' : 'Not here.\n')
    if (code) server.emit('code', code)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // It listens on TCP.
  try {
    const received = once(server, 'code', { signal: AbortSignal.timeout(waitMs) }).catch(() => {
      throw new CommandError('Nobody logged in for five minutes.')
    })
    const query = new URLSearchParams({ return_to: `http://127.0.0.1:${port}/`, challenge })
    openBrowser(`${baseUrl}/api/auth/oidc/login?${query}`)
    const [code] = await received
    return String(code)
  } finally {
    server.close()
  }
}

function openBrowser(url: string) {
  process.stderr.write(`Log in at ${url}\n`)
  const openers: Partial<Record<NodeJS.Platform, string[]>> = {
    darwin: ['open'],
    win32: ['rundll32', 'url.dll,FileProtocolHandler'],
  }
  const [command = 'xdg-open', ...args] = process.env.BROWSER
    ? [process.env.BROWSER]
    : (openers[process.platform] ?? [])
  // Without an opener the user opens the printed address.
  execFile(command, [...args, url], () => undefined)
}
