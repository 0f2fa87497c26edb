import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { listen } from './openid.ts'

interface Signing {
  alg?: string
  kid?: string
  key?: CryptoKey
}

/** The issuer of the tokens of a CI, on loopback. */
export async function startIssuer() {
  const keys = new Map<string, { privateKey: CryptoKey; alg: string }>()
  const published: JWK[] = []
  const fetches: string[] = []
  /** Paths that are redirected. */
  const moved = new Set<string>()
  const add = async (kid: string, alg: string) => {
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
    keys.set(kid, { privateKey, alg })
    published.push({ ...(await exportJWK(publicKey)), kid, alg, use: 'sig' })
  }
  for (const alg of ['RS256', 'ES256', 'EdDSA', 'PS256']) await add(alg, alg)
  const server = await listen((request, response) => {
    fetches.push(request.url ?? '')
    const body = request.url === '/jwks' ? { keys: published } : metadata
    const status = moved.has(request.url ?? '') ? 302 : 200
    response.writeHead(status, { 'content-type': 'application/json', location: '/jwks' })
    response.end(JSON.stringify(body))
  })
  const metadata = { issuer: server.url, jwks_uri: `${server.url}/jwks` }
  /** A token that is right but for `change`, with the key of this name. */
  const sign = (change: Record<string, unknown> = {}, { kid = 'RS256', ...signing }: Signing = {}) => {
    const iat = Math.floor(Date.now() / 1000)
    const { privateKey, alg } = keys.get(kid) ?? {}
    const key = signing.key ?? privateKey
    if (!key) throw new Error(`No key ${kid}`)
    const claims = {
      iss: server.url,
      aud: 'https://files.test',
      iat,
      nbf: iat,
      exp: iat + 300,
      sub: 'repo:acme/site:ref:refs/heads/main',
      jti: crypto.randomUUID(),
      repository: 'acme/site',
      ref: 'refs/heads/main',
      ...change,
    }
    return new SignJWT(claims).setProtectedHeader({ alg: signing.alg ?? alg ?? 'RS256', kid }).sign(key)
  }
  return { ...server, sign, add, published, fetches, moved, metadata }
}
