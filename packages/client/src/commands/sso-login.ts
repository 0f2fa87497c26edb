import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { components } from '../../generated/domain-service.d.ts'
import { ProblemError } from '../problem-error.ts'
import { type Service, storeToken } from './credentials.ts'
import { UsageError } from './terminal.ts'

type LoggedIn = components['schemas']['LoggedIn']

const waitMs = 300_000

/**
 * Logs in by single sign-on: the browser is redirected to a loopback port with a code, which only this process can
 * exchange (RFC 8252, 7.3; RFC 7636). Later commands use the token until it expires.
 */
export async function logIn(service: Service, isSso: boolean): Promise<void> {
  if (!isSso) throw new UsageError('Add --sso; for a password set variables instead.')
  const verifier = randomBytes(32).toString('base64url')
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const code = await receiveCode(service.baseUrl, challenge)
  const response = await fetch(`${service.baseUrl}/api/auth/oidc/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code, verifier }),
  })
  if (!response.ok) throw await ProblemError.from(response)
  const login = (await response.json()) as LoggedIn // As both services document.
  await storeToken(service.baseUrl, login.access_token, login.expires_in)
  const minutes = Math.floor(login.expires_in / 60)
  process.stdout.write(`Logged in as ${login.user.username} for ${minutes} minutes.\n`)
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
      throw new UsageError('Nobody logged in for five minutes.')
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
