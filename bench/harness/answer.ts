import type { BareAnswer } from '../peers/bare.ts'

export interface Answer {
  status: number
  headers: Record<string, string>
  body: Buffer<ArrayBuffer>
}

/** One answer, whole. */
export async function ask(url: string, headers: Record<string, string> = {}): Promise<Answer> {
  const answer = await fetch(url, { headers: { 'accept-encoding': 'identity', ...headers } })
  const body = Buffer.from(await answer.arrayBuffer())
  return { status: answer.status, headers: Object.fromEntries(answer.headers), body }
}

/**
 * What must be so before a load tells anything: the same bytes under the same type, a length, a connection that stays.
 * @throws {Error} naming what is not.
 */
export function demandAlike(name: string, found: Answer, wanted: Answer) {
  const faults = [
    found.status === wanted.status || `status ${found.status}`,
    found.body.equals(wanted.body) || `${found.body.length} other bytes`,
    found.status === 304 ||
      found.headers['content-length'] === String(wanted.body.length) ||
      'no length',
    typeOf(found) === typeOf(wanted) || `content type ${typeOf(found)}`,
    found.headers.connection !== 'close' || 'a connection that is closed',
  ].filter((fault) => fault !== true)
  if (faults.length > 0) throw new Error(`${name} answers otherwise: ${faults.join(', ')}`)
}

/** The same answer for the bare route: every header but those of the moment and of the connection. */
export function toBare(path: string, { status, headers, body }: Answer): BareAnswer {
  const kept = Object.entries(headers).filter(([name]) => !ofTheMoment.has(name))
  return {
    path,
    status,
    headers: Object.fromEntries(kept),
    body: status === 304 ? undefined : { base64: body.toString('base64') },
    isGuarded: false,
  }
}

const ofTheMoment = new Set(['date', 'connection', 'keep-alive', 'x-request-id', 'content-length'])

const typeOf = ({ headers }: Answer) => headers['content-type']?.split(';', 1)[0]
