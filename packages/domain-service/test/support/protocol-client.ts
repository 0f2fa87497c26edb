import { expect } from 'vitest'
import { z } from 'zod'

/** A service in this process, or in one of its own. */
export interface Reachable {
  url: string
  sessionOf: (user: string) => Promise<string>
}

const Created = z.object({ token: z.string() })

/** An API token of `admin` with these limits. */
export async function createToken(service: Reachable, limits: object = {}): Promise<string> {
  const answer = await fetch(`${service.url}/api/tokens`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await service.sessionOf('admin')}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ name: `test ${crypto.randomUUID()}`, ...limits }),
  })
  expect(answer.status).toBe(201)
  return Created.parse(await answer.json()).token
}

/** The header of HTTP Basic authentication with a token as password. */
export const basic = (token: string, user = 'any') => ({
  authorization: `Basic ${Buffer.from(`${user}:${token}`).toString('base64')}`,
})

export interface ProtocolAnswer {
  status: number
  type: string | null
  text: string
  headers: Headers
}

/** Sends a request just as given, without credentials of its own. */
export async function send(
  service: Pick<Reachable, 'url'>,
  method: string,
  path: string,
  options: { headers?: Record<string, string>; body?: string } = {},
): Promise<ProtocolAnswer> {
  const answer = await fetch(service.url + path, { method, ...options })
  const { status, headers } = answer
  return { status, type: headers.get('content-type'), text: await answer.text(), headers }
}
