import { randomBytes, randomInt } from 'node:crypto'
import type { Program } from './program.ts'
import type { Answer } from './start.ts'
import { offsetOf, tus, urlOf } from './tus.ts'

const size = 12_000_000
const path = 'resumed.bin'

/** An upload in several requests. */
export interface ResumedUpload {
  url: string
  bytes: Buffer
  /** Bytes that a response has told to be durable. */
  acknowledged: number
}

const client = ({ ask }: Pick<Program, 'ask'>, token: string) =>
  tus({
    call: (method, url, { headers, body } = {}) =>
      ask({ method, path: url, body, headers: { authorization: `Bearer ${token}`, ...headers } }),
  })

/** Uploads one file after the other, each in several requests, until the service is gone; returns the last one. */
export async function resumeUntilGone(program: Program, token: string): Promise<ResumedUpload> {
  const { create, patch } = client(program, token)
  let upload: ResumedUpload | undefined
  for (;;) {
    try {
      if (!upload || upload.acknowledged === size)
        upload = { url: urlOf(await create(path, size)), bytes: randomBytes(size), acknowledged: 0 }
      const { url, bytes, acknowledged: from } = upload
      const answer = await patch(url, from, bytes.subarray(from, from + randomInt(1, 6_000_000)))
      if (answer.status !== 204) throw new Error(`PATCH: ${answer.status} ${answer.bytes}`)
      upload.acknowledged = offsetOf(answer)
    } catch (error) {
      const isGone = error instanceof Error && 'code' in error
      if (!isGone || !upload) throw error
      return upload
    }
  }
}

/** Continues an upload where HEAD says; returns what of it is lost, or has other bytes. */
export async function findLostBytes(
  program: Program,
  token: string,
  { url, bytes, acknowledged }: ResumedUpload,
): Promise<string[]> {
  const { head, patch } = client(program, token)
  const known = await untilServed(() => head(url))
  const offset = offsetOf(known)
  // The last byte is withheld until the file is stored.
  if (!(offset >= Math.min(acknowledged, size - 1)))
    return [`${acknowledged} bytes were acknowledged; HEAD: ${known.status}, ${offset} bytes`]
  const { status, bytes: answer } = await untilServed(() => patch(url, offset, bytes.subarray(offset)))
  if (status !== 204) return [`the rest after ${offset} bytes was answered ${status}: ${answer}`]
  const served = await program.ask({ method: 'GET', path: `/static/${path}`, headers: {} })
  return served.bytes.equals(bytes) ? [] : [`other bytes, of which ${offset} survived the cut`]
}

// A busy service sheds requests.
async function untilServed(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await ask()
    if (answer.status !== 503) return answer
  }
}
