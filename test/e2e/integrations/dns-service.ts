import { createServer, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { z } from 'zod'
import { type Sandbox, startSandbox } from '../../../packages/registrar-sandbox/src/index.ts'
import { reservePorts } from '../../support/ports.ts'
import { startProgram } from './program.ts'

const root = join(import.meta.dirname, '../../..')
const password = 'correct horse battery'

/** The domain service before a sandbox. */
export interface DnsService extends AsyncDisposable {
  port: number
  url: string
  /** The records of a domain as the registrar has them. */
  records: (domain: string) => string[]
  /** An API token with these limits. */
  createToken: (limits: object) => Promise<string>
}

interface Options {
  folder: string
  domains: string[]
  /** Called with a domain after each write of its zone, before the service gets its response. */
  onWrite: (domain: string, sandbox: Sandbox) => Promise<void>
}

export async function startDnsService(options: Options): Promise<DnsService> {
  const account = { apiUser: 'sandbox', apiKey: 'sandbox-key-for-development-only' }
  const hosts = [{ name: 'www', type: 'A', address: '192.0.2.1' }]
  const domains = options.domains.map((name) => ({ name, hosts }))
  // `REGISTRAR_RATE=20/minute,700/hour,8000/day` tries it at the registrar's real pace.
  const { REGISTRAR_RATE: rate } = process.env
  const sandbox = await startSandbox({ ...account, rate: rate ?? 'off', domains })
  const bridge = await startBridge(sandbox, options.onWrite)
  const port = await reservePorts()
  const url = `http://127.0.0.1:${port}`
  const env = {
    PORT: String(port),
    DATA_DIR: join(options.folder, 'domain-service'),
    ADMIN_USERNAME: 'boss',
    ADMIN_PASSWORD: password,
    REGISTRAR_URL: bridge.url,
    REGISTRAR_API_USER: account.apiUser,
    REGISTRAR_API_KEY: account.apiKey,
    REGISTRAR_CLIENT_IP: '127.0.0.1',
    REGISTRAR_RATE: rate ?? '100000/minute',
  }
  const args = [join(root, 'packages/domain-service/dist/main.js')]
  const service = await startProgram(
    { command: process.execPath, args, env },
    async () => (await fetch(`${url}/health`)).ok,
  )
  return {
    port,
    url,
    records: (domain) => sandbox.zone(domain).hosts.map(({ name, type, address }) => `${name} ${type} ${address}`),
    createToken: (limits) => createToken(url, limits),
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
      await bridge.close()
      await sandbox.close()
    },
  }
}

/** Forwards the calls of the service to the sandbox, so that DNS has a zone before the service says so. */
export async function startBridge(sandbox: Sandbox, onWrite: Options['onWrite']) {
  const forward = async (request: IncomingMessage) => {
    const body = await buffer(request)
    const { method = 'POST', headers } = request
    const answer = await fetch(sandbox.url, {
      method,
      headers: { 'content-type': headers['content-type'] ?? '' },
      body,
    })
    const text = await answer.text()
    const parameters = new URLSearchParams(body.toString())
    if (parameters.get('Command')?.toLowerCase().endsWith('.sethosts'))
      await onWrite(`${parameters.get('SLD')}.${parameters.get('TLD')}`, sandbox)
    return { status: answer.status, type: answer.headers.get('content-type') ?? '', text }
  }
  const server = createServer((request, response) => {
    forward(request).then(
      ({ status, type, text }) => response.writeHead(status, { 'content-type': type }).end(text),
      () => response.destroy(),
    )
  })
  const port = await reservePorts()
  server.listen(port, '127.0.0.1')
  return {
    url: `http://127.0.0.1:${port}/xml.response`,
    close: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

async function createToken(url: string, limits: object): Promise<string> {
  const json = { 'content-type': 'application/json' }
  const login = await fetch(`${url}/api/auth/login`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ username: 'boss', password }),
  })
  const { access_token } = Session.parse(await login.json())
  const created = await fetch(`${url}/api/tokens`, {
    method: 'POST',
    headers: { ...json, authorization: `Bearer ${access_token}` },
    body: JSON.stringify({ name: `integrations ${crypto.randomUUID()}`, ...limits }),
  })
  return Token.parse(await created.json()).token
}

const Session = z.object({ access_token: z.string() })
const Token = z.object({ token: z.string() })
