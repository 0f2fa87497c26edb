import createClient from 'openapi-fetch'
import type { paths } from '../generated/static-service.d.ts'
import { unwrap } from './responses.ts'

export type Fetch = (request: Request) => Promise<Response>

/** An API token (or a login token), a user's password, or a function that gets a token. */
export type Credentials = { token: string } | { username: string; password: string } | { obtain: () => Promise<string> }

export interface ClientOptions {
  /** Address of the service, for example `http://127.0.0.1:3001`. */
  baseUrl: string
  credentials: Credentials
  fetch?: Fetch
  sleep?: (milliseconds: number) => Promise<void>
}

/** What a client sends its requests by. */
export interface Session {
  /** Address of the service, without a trailing slash. */
  baseUrl: string
  /** Sends a request with the token, and repeats it where that is safe. */
  send: Fetch
  sleep: (milliseconds: number) => Promise<void>
}

/** Without a given token, a session logs in before its first request, and again after a 401. */
export function openSession(options: ClientOptions): Session {
  const { credentials, sleep = wait } = options
  const baseUrl = trimSlashes(options.baseUrl)
  const fetch = retryingFetch(options.fetch ?? ((request) => globalThis.fetch(request)), sleep)
  let login: Promise<string> | undefined
  async function logIn(): Promise<string> {
    if ('token' in credentials) return credentials.token
    if ('obtain' in credentials) return credentials.obtain()
    const api = createClient<paths>({ baseUrl, fetch })
    return (await unwrap(api.POST('/api/auth/login', { body: credentials }))).access_token
  }
  // Concurrent requests share one login. After a failed login the next request tries again.
  const getToken = () => {
    login ??= logIn().catch((error) => {
      login = undefined
      throw error
    })
    return login
  }
  const send: Fetch = async (request) => {
    const used = getToken()
    const response = await fetch(authorize(request.clone(), await used))
    if (response.status !== 401 || 'token' in credentials) return response
    await response.body?.cancel()
    if (login === used) login = undefined
    return fetch(authorize(request, await getToken()))
  }
  return { baseUrl, send, sleep }
}

const attempts = 5
/** Longest `Retry-After` that is waited for. */
const maxWaitSeconds = 120
// RFC 9110, 9.2.2.
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])

/** Repeats a request that may be repeated after the `Retry-After` of a 429 or 503, and after a lost connection. */
export function retryingFetch(fetch: Fetch, sleep: Session['sleep']): Fetch {
  let isKnown = false // Before a first response, the address may be wrong: fail at once.
  return async (request) => {
    const isSafe = idempotent.has(request.method) || request.headers.has('idempotency-key')
    for (let attempt = 1; ; attempt += 1) {
      const isLast = attempt === attempts || !isSafe
      const response = await fetch(isLast ? request : request.clone()).catch(async (error) => {
        if (isLast || !isKnown || !(error instanceof TypeError)) throw error
        await sleep(500 * 2 ** attempt)
      })
      if (!response) continue
      isKnown = true
      if (isLast || ![429, 503].includes(response.status)) return response
      const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
      if (!(seconds >= 0 && seconds <= maxWaitSeconds)) return response
      await response.body?.cancel()
      await sleep(seconds * 1000)
    }
  }
}

export const wait = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds))

function authorize(request: Request, token: string): Request {
  request.headers.set('authorization', `Bearer ${token}`)
  return request
}

/** Removes trailing slashes, so that paths can be appended. */
export const trimSlashes = (url: string): string => url.replace(/\/+$/, '')
