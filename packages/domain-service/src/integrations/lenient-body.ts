import { type App, HttpError } from '@domains-and-files/http'

/** A JSON object whose keys are compared without regard to case. */
export interface LenientBody {
  /** The value at a key in lower case. */
  values: ReadonlyMap<string, unknown>
  /** Keys as the client wrote them, by their lower case. */
  spelling: ReadonlyMap<string, string>
}

/**
 * Takes JSON bodies under any content type: curl sends `application/x-www-form-urlencoded` by default. Call it on a
 * scope of its own.
 */
export function takeAnyJson(scope: App) {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => {
    done(null, body)
  })
}

/** @throws {HttpError} malformed_body for anything but a JSON object. */
export function readLenientBody(body: unknown): LenientBody {
  const value = parseJson(body)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new HttpError(400, 'malformed_body', 'The body must be a JSON object')
  const entries = Object.entries(value)
  return {
    values: new Map(entries.map(([key, each]) => [key.toLowerCase(), each])),
    spelling: new Map(entries.map(([key]) => [key.toLowerCase(), key])),
  }
}

/** @throws {HttpError} malformed_body. */
export function parseJson(body: unknown): unknown {
  try {
    return JSON.parse(typeof body === 'string' ? body : '')
  } catch {
    throw new HttpError(400, 'malformed_body', 'The body is not valid JSON')
  }
}

/** The text at a key; undefined where there is none, or another type. */
export function textAt({ values }: LenientBody, key: string): string | undefined {
  const value = values.get(key)
  return typeof value === 'string' ? value : undefined
}
