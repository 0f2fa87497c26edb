import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { trimSlashes } from '../base-url.ts'
import { ProblemError } from '../problem-error.ts'
import type { Credentials } from '../session.ts'
import { UsageError } from './terminal.ts'

/** What a service is called in variables, and where it is. */
export interface Service {
  /** `DOMAINS` or `FILES`. */
  prefix: string
  baseUrl: string
}

/**
 * From `<PREFIX>_TOKEN`, or `<PREFIX>_USERNAME` and `<PREFIX>_PASSWORD` (a missing password is asked for), or the token that
 * GitHub or GitLab offers to a job, or the last `login --sso`.
 */
export async function readCredentials(service: Service): Promise<Credentials> {
  const { prefix } = service
  const token = process.env[`${prefix}_TOKEN`]
  if (token) return { token }
  const username = process.env[`${prefix}_USERNAME`]
  if (username) return { username, password: await readPassword(prefix, username) }
  const subjectToken = findWorkloadToken(service)
  if (subjectToken) return { obtain: async () => exchange(service, await subjectToken()) }
  const stored = (await readTokens())[trimSlashes(service.baseUrl)]
  if (stored && Date.parse(stored.expires_at) > Date.now()) return { token: stored.token }
  throw new UsageError(
    `Set ${prefix}_TOKEN, or ${prefix}_USERNAME, or log in: ${prefix.toLowerCase()} login --sso.`,
  )
}

async function readPassword(prefix: string, username: string): Promise<string> {
  const password =
    process.env[`${prefix}_PASSWORD`] ?? (await askPassword(`Password of ${username}: `))
  if (password === undefined) throw new UsageError(`Set ${prefix}_PASSWORD or ${prefix}_TOKEN.`)
  return password
}

/** One line of standard input, without echo at a terminal; undefined at its end. */
async function askPassword(question: string): Promise<string | undefined> {
  process.stderr.write(question)
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const { stdin } = process
  const lines = createInterface({ input: stdin, output: silent, terminal: stdin.isTTY })
  try {
    for await (const line of lines) return line
    return undefined
  } finally {
    lines.close()
    process.stderr.write('\n')
  }
}

/** Gets the token of this CI job, if there is one: a new one each time from GitHub, the one of the job from GitLab. */
function findWorkloadToken({ prefix, baseUrl }: Service): (() => Promise<string>) | undefined {
  const { ACTIONS_ID_TOKEN_REQUEST_URL: url, ACTIONS_ID_TOKEN_REQUEST_TOKEN: secret } = process.env
  const ofJob = process.env[`${prefix}_ID_TOKEN`]
  if (ofJob) return async () => ofJob
  if (!url || !secret) return undefined
  const audience = process.env[`${prefix}_AUDIENCE`] || trimSlashes(baseUrl)
  return async () => {
    const request = new URL(url)
    request.searchParams.set('audience', audience)
    const response = await fetch(request, { headers: { authorization: `Bearer ${secret}` } })
    if (!response.ok) throw new Error(`GitHub offers this job no token: ${response.status}`)
    return readField(await response.json(), 'value')
  }
}

/** RFC 8693. */
async function exchange({ baseUrl }: Service, subjectToken: string): Promise<string> {
  const response = await fetch(`${trimSlashes(baseUrl)}/api/auth/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: subjectToken,
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    }),
  })
  if (response.ok) return readField(await response.json(), 'access_token')
  if (response.status !== 400) throw await ProblemError.from(response)
  const detail = readField(await response.json(), 'error_description')
  throw new ProblemError({ status: 400, code: 'invalid_grant', detail })
}

/** A text of a JSON object. @throws {Error} if it is not there */
function readField(body: unknown, name: string): string {
  if (typeof body === 'object' && body !== null && name in body) {
    const value: unknown = Object.entries(body).find(([key]) => key === name)?.[1]
    if (typeof value === 'string') return value
  }
  throw new Error(`The response has no ${name}`)
}

type StoredTokens = Record<string, { token: string; expires_at: string }>

const tokensFile = () =>
  join(
    process.env.XDG_CONFIG_HOME || join(homedir(), '.config'),
    'domains-and-files',
    'tokens.json',
  )

async function readTokens(): Promise<StoredTokens> {
  try {
    return JSON.parse(await readFile(tokensFile(), 'utf8'))
  } catch {
    return {} // No login yet, or a file that the next login replaces.
  }
}

/** Stores the token of a login, for this user of the machine only. `expiresIn` is in seconds. */
export async function storeToken({ baseUrl }: Service, token: string, expiresIn: number) {
  const file = tokensFile()
  const expires_at = new Date(Date.now() + expiresIn * 1000).toISOString()
  const tokens = { ...(await readTokens()), [trimSlashes(baseUrl)]: { token, expires_at } }
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const temporary = `${file}.${process.pid}.tmp`
  await writeFile(temporary, `${JSON.stringify(tokens, null, 2)}\n`, { mode: 0o600 })
  await rename(temporary, file)
}
