import { ProblemError } from './problem-error.ts'
import { createRetryingFetch, type Fetch, type RetryOptions, wait } from './retrying-fetch.ts'

/** An API token (or a login token), a user's password, or a function that gets a token. */
export type Credentials =
  | { token: string }
  | { username: string; password: string }
  | { obtain: () => Promise<string> }

export interface ClientOptions extends RetryOptions {
  /** Address of the service, for example `http://127.0.0.1:3001`. */
  baseUrl: string
  credentials: Credentials
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
  const fetch = createRetryingFetch(options)
  let login: Promise<string> | undefined
  const forget = (ended: Promise<string>) => {
    if (login === ended) login = undefined
  }
  // Concurrent requests share one login. After a failed login the next request tries again.
  const getToken = () => {
    if ('token' in credentials) return Promise.resolve(credentials.token)
    if (login) return login
    const started = 'obtain' in credentials ? credentials.obtain() : logIn(credentials)
    started.catch(() => forget(started))
    login = started
    return started
  }
  async function logIn(password: object): Promise<string> {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify(password)
    const request = new Request(`${baseUrl}/api/auth/login`, { method: 'POST', headers, body })
    const response = await fetch(request)
    if (!response.ok) throw await ProblemError.from(response)
    const answer: unknown = await response.json()
    if (typeof answer === 'object' && answer !== null && 'access_token' in answer)
      return String(answer.access_token)
    throw new Error(`${baseUrl} is not one of the services: its login returned no token`)
  }
  const send: Fetch = async (request) => {
    const used = getToken()
    const response = await fetch(authorize(request.clone(), await used))
    if (response.status !== 401 || 'token' in credentials) return response
    await response.body?.cancel()
    forget(used)
    return fetch(authorize(request, await getToken()))
  }
  return { baseUrl, send, sleep }
}

function authorize(request: Request, token: string): Request {
  request.headers.set('authorization', `Bearer ${token}`)
  return request
}

/** Removes trailing slashes, so that paths can be appended. */
export function trimSlashes(url: string): string {
  let end = url.length
  while (end > 0 && url[end - 1] === '/') end -= 1
  return url.slice(0, end)
}
