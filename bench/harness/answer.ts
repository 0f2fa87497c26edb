import type { PreparedResponse } from '../peers/prepared-response.ts'

export interface Answer {
  status: number
  headers: Record<string, string>
  body: Buffer<ArrayBuffer>
}

/** Sends one GET and reads the response. */
export async function ask(url: string, headers: Record<string, string> = {}): Promise<Answer> {
  const answer = await fetch(url, { headers: { 'accept-encoding': 'identity', ...headers } })
  const body = Buffer.from(await answer.arrayBuffer())
  return { status: answer.status, headers: Object.fromEntries(answer.headers), body }
}

/** @throws {Error} unless two servers do the same work: same bytes and type, a length, a connection that stays open. */
export function assertAlike(name: string, found: Answer, wanted: Answer) {
  const faults = [
    found.status === wanted.status || `status ${found.status}`,
    found.body.equals(wanted.body) || `${found.body.length} bytes that differ`,
    found.status === 304 || found.headers['content-length'] === String(wanted.body.length) || 'no length',
    typeOf(found) === typeOf(wanted) || `content type ${typeOf(found)}`,
    found.headers.connection !== 'close' || 'a connection that is closed',
  ].filter((fault) => fault !== true)
  if (faults.length > 0) throw new Error(`${name} responds differently: ${faults.join(', ')}`)
}

/** The same response for the limits: without the headers that differ between requests and connections. */
export function toPrepared(path: string, { status, headers, body }: Answer): PreparedResponse {
  const kept = Object.entries(headers).filter(([name]) => !variable.has(name))
  return {
    path,
    status,
    headers: Object.fromEntries(kept),
    body: status === 304 ? undefined : { base64: body.toString('base64') },
    isGuarded: false,
  }
}

const variable = new Set(['date', 'connection', 'keep-alive', 'x-request-id', 'content-length'])

const typeOf = ({ headers }: Answer) => headers['content-type']?.split(';', 1)[0]
