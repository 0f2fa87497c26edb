import { ProblemError } from './problem-error.ts'
import type { Fetch, RetryOptions } from './retrying-fetch.ts'

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

/** Adds the token to requests. Without a given token it logs in first, and again after a 401. */
export class Session {
  readonly #baseUrl: string
  readonly #credentials: Credentials
  readonly #fetch: Fetch
  #login: Promise<string> | undefined

  constructor(baseUrl: string, credentials: Credentials, fetch: Fetch) {
    this.#baseUrl = baseUrl
    this.#credentials = credentials
    this.#fetch = fetch
  }

  /** Sends a request with the token. */
  readonly send: Fetch = async (request) => {
    const login = this.#token()
    const response = await this.#fetch(authorize(request.clone(), await login))
    if (response.status !== 401 || 'token' in this.#credentials) return response
    await response.body?.cancel()
    this.#forget(login)
    return this.#fetch(authorize(request, await this.#token()))
  }

  /** Concurrent requests share one login. After a failed login the next request tries again. */
  #token(): Promise<string> {
    const credentials = this.#credentials
    if ('token' in credentials) return Promise.resolve(credentials.token)
    if (this.#login) return this.#login
    const login = 'obtain' in credentials ? credentials.obtain() : this.#logIn(credentials)
    login.catch(() => this.#forget(login))
    this.#login = login
    return login
  }

  #forget(login: Promise<string>) {
    if (this.#login === login) this.#login = undefined
  }

  async #logIn(credentials: { username: string; password: string }): Promise<string> {
    const response = await this.#fetch(
      new Request(`${this.#baseUrl}/api/auth/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(credentials),
      }),
    )
    if (!response.ok) throw await ProblemError.from(response)
    const body: unknown = await response.json()
    if (typeof body !== 'object' || body === null || !('access_token' in body)) {
      throw new Error(`${this.#baseUrl} is not one of the services: its login returned no token`)
    }
    return String(body.access_token)
  }
}

function authorize(request: Request, token: string): Request {
  request.headers.set('authorization', `Bearer ${token}`)
  return request
}
