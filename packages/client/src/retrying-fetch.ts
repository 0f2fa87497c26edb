export type Fetch = (request: Request) => Promise<Response>

export interface RetryOptions {
  /** Attempts in total; default 5. */
  attempts?: number
  /** Maximum `Retry-After` to wait for, in seconds; default 120. A response with a longer one is returned to the caller. */
  maxWaitSeconds?: number
  fetch?: Fetch
  sleep?: (milliseconds: number) => Promise<void>
}

/**
 * Wraps `fetch` to retry responses 429 and 503 after their `Retry-After`. Only safe repeats: idempotent methods (RFC
 * 9110, 9.2.2) or requests with an `Idempotency-Key`.
 */
export function createRetryingFetch(options: RetryOptions = {}): Fetch {
  const { attempts = 5, maxWaitSeconds = 120, sleep = wait } = options
  const send = options.fetch ?? ((request: Request) => fetch(request))
  return async (request) => {
    for (let attempt = 1; ; attempt += 1) {
      const isLast = attempt === attempts || !isRepeatable(request)
      const response = await send(isLast ? request : request.clone())
      if (isLast || ![429, 503].includes(response.status)) return response
      const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
      if (!(seconds >= 0 && seconds <= maxWaitSeconds)) return response
      await response.body?.cancel()
      await sleep(seconds * 1000)
    }
  }
}

const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])

const isRepeatable = ({ method, headers }: Request) =>
  idempotent.has(method) || headers.has('idempotency-key')

export const wait = (milliseconds: number) =>
  new Promise<void>((resolve) => setTimeout(resolve, milliseconds))
