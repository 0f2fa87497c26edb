import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { exportJWK, generateKeyPair } from 'jose'
import Provider from 'oidc-provider'
import type { OidcConfig } from '../../src/settings.ts'
import type { forms } from './start.ts'

/** Where the services of these tests believe to be; the tests send what goes there to their real address. */
const baseUrl = 'https://service.test/base'
export const returnTo = 'http://127.0.0.1:49152/done?from=test'

export const oidcConfig = (issuer: string): OidcConfig => ({
  issuer,
  baseUrl,
  clientId: 'service',
  clientSecret: 'the secret of the client',
  roles: [
    { group: 'shop-admins', role: 'admin' as const, domains: ['example.com'] },
    { group: 'ops', role: 'admin' },
    { group: 'shop', role: 'editor', domains: ['example.com'] },
    { group: 'web', role: 'editor', folders: ['docs/'] },
    { group: 'staff', role: 'viewer' },
  ],
  scopes: 'openid profile groups',
  usernameClaim: 'preferred_username',
  groupsClaim: 'groups',
  name: 'Test ID',
  returnOrigins: ['https://console.test'],
})

export async function listen(handler: RequestListener) {
  const server = createServer((request, response) => handler(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('No port')
  const close = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return { url: `http://127.0.0.1:${address.port}`, [Symbol.asyncDispose]: close }
}

/** A real provider on loopback. `accounts` are claims by subject; `redirectUris` are read at its first request. */
export async function startProvider(
  accounts: Record<string, { name: string; groups: string[] }>,
  redirectUris = [`${baseUrl}/api/auth/oidc/callback`],
) {
  let handler: RequestListener | undefined
  const server = await listen((request, response) => {
    handler ??= makeProvider().callback()
    handler(request, response)
  })
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const keys = [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig' }]
  const client_secret = 'the secret of the client'
  const makeProvider = () =>
    new Provider(server.url, {
      clients: [{ client_id: 'service', client_secret, redirect_uris: redirectUris }],
      jwks: { keys },
      cookies: { keys: ['a key of the tests'] },
      pkce: { required: () => true },
      scopes: ['openid', 'profile', 'groups'],
      claims: { openid: ['sub'], profile: ['preferred_username'], groups: ['groups'] },
      ttl: { AccessToken: 60, IdToken: 60, Interaction: 600, Session: 600, Grant: 600 },
      findAccount: (_context, sub) => ({
        accountId: sub,
        claims: () => ({
          sub,
          preferred_username: accounts[sub]?.name,
          groups: accounts[sub]?.groups,
        }),
      }),
    })
  return server
}

/** A browser: keeps cookies, and follows no redirect by itself. */
function openBrowser(accept: string) {
  const cookies = new Map<string, string>()
  return async (url: string, init: RequestInit = {}) => {
    const response = await fetch(url, {
      ...init,
      redirect: 'manual',
      headers: { accept, cookie: [...cookies].map((pair) => pair.join('=')).join('; ') },
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    return { response, location: location ? new URL(location, url).href : undefined }
  }
}

export const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url')

export interface Place {
  url: string
}

/** Begins a login at a service, as a browser. */
export async function begin({ url }: Place, accept = '*/*') {
  const verifier = randomBytes(32).toString('base64url')
  const browse = openBrowser(accept)
  const query = new URLSearchParams({ return_to: returnTo, challenge: challengeOf(verifier) })
  const { response, location = '' } = await browse(`${url}/api/auth/oidc/login?${query}`)
  return { browse, verifier, response, provider: location }
}

/** Logs in at the real provider, up to its redirect to the callback of `callbackAt`. */
export async function logIn(service: Place, sub: string, callbackAt = service, accept = '*/*') {
  const { browse, verifier, provider } = await begin(service, accept)
  let at: string | undefined = provider
  while (at && !at.startsWith(baseUrl)) {
    const { response, location } = await browse(at)
    if (location) {
      at = location
      continue
    }
    const page = await response.text()
    const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1]
    if (!prompt) throw new Error(page)
    const form = new URLSearchParams({ prompt, login: sub, password: 'any' })
    at = (await browse(at, { method: 'POST', body: form })).location
  }
  const callback = callbackAt.url + (at ?? '').slice(baseUrl.length)
  const { response, location } = await browse(callback)
  const code = new URL(location ?? 'http://none').searchParams.get('code') ?? ''
  return {
    status: response.status,
    body: await response.text(),
    location,
    code,
    verifier,
    callback,
    browse,
  }
}

/** A real provider with these accounts, and a service whose users log in there. */
export async function startSignOn(open: (typeof forms)[number][1], accounts: Parameters<typeof startProvider>[0]) {
  const provider = await startProvider(accounts)
  const service = await open({ oidc: oidcConfig(provider.url), audience: 'domain-service' })
  const redeem = (code: string, verifier: string, at: typeof service.other = service.other) =>
    at.send('POST', '/api/auth/oidc/token', { code, verifier })
  const signOn = async (sub: string) => {
    const { code, verifier } = await logIn(service, sub, service.other)
    return redeem(code, verifier)
  }
  const me = async (token: string) => (await service.send('GET', '/api/auth/me', undefined, token)).body
  const dispose = async () => {
    await service[Symbol.asyncDispose]()
    await provider[Symbol.asyncDispose]()
  }
  return { provider, service, redeem, signOn, me, [Symbol.asyncDispose]: dispose }
}
