import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import fc from 'fast-check'
import type { Program } from './program.ts'
import { offsetOf, offsetStream, tus, tusHeaders, urlOf } from './tus.ts'

interface Interruption {
  kind: 'cut' | 'kill'
  /** Bytes of the file; bytes of the first PATCH; those sent before the interruption: the last as shares of those before. */
  size: number
  announced: number
  sent: number
  /** Turns of the event loop before it, so that the service is in the middle of something. */
  turns: number
}

const interruption = fc.record({
  size: fc.oneof(fc.nat(70_000), fc.nat(12_000_000)).map((size) => size + 1),
  announced: fc.double({ min: 0, max: 1, noNaN: true }),
  sent: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
  turns: fc.nat(400),
})

/** So many cuts, and as many kills. */
export const sampleInterruptions = (count: number): Interruption[] =>
  fc
    .sample(interruption, { numRuns: 2 * count, seed: Number(process.env.RANDOM_SEED ?? 1) })
    .map((each, at) => ({ ...each, kind: at % 2 === 0 ? 'cut' : 'kill' }))

interface Context {
  /** The program, or the proxy, that gets the next request. */
  next: () => Pick<Program, 'ask' | 'port'>
  /** Kills the program that got the last one, and starts another one. */
  kill: () => Promise<void>
  token: string
}

/** Uploads a file that is interrupted, continues as a client does, where HEAD says, and compares what is served. */
export async function uploadInterrupted(
  path: string,
  { kind, size, announced, sent, turns }: Interruption,
  { next, kill, token }: Context,
) {
  const authorization = `Bearer ${token}`
  const { create, patch, head } = tus({
    call: (method, url, { headers, body } = {}) =>
      next().ask({ method, path: url, body, headers: { authorization, ...headers } }),
  })
  const bytes = randomBytes(size)
  const url = urlOf(await create({ path, overwrite: 'false' }, size))
  const first = Math.ceil(size * announced)
  const begun = await patch(url, 0, bytes.subarray(0, first))
  assert.equal(begun.status, 204, `${path}: ${begun.status} ${begun.bytes}`)

  if (first < size) {
    const { port } = next()
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    const end = first + Math.floor((size - first) * sent)
    socket.write(
      `PATCH ${url} HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n` +
        `tus-resumable: ${tusHeaders['tus-resumable']}\r\ncontent-type: ${offsetStream}\r\n` +
        `upload-offset: ${first}\r\ncontent-length: ${size - first}\r\n\r\n`,
    )
    const isWritten = new Promise<void>((resolve) => socket.write(bytes.subarray(first, end), () => resolve()))
    await Promise.race([isWritten, once(socket, 'close')])
    for (let turn = 0; turn < turns; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve))
    if (kind === 'kill') await kill()
    socket.destroy()
  }

  const known = await readOffset()
  assert.ok(known >= Math.min(first, size - 1), `${path}: an acknowledged offset is lost`)
  const done = await finish()
  const failure = `${path}: ${done.status} ${done.bytes}`
  assert.equal(done.headers['content-location'], `/api/files/${path}`, failure)
  const served = await next().ask({ method: 'GET', path: `/static/${path}`, headers: {} })
  assert.ok(served.bytes.equals(bytes), `${path}: other bytes are served`)

  async function readOffset() {
    for (;;) {
      const answer = await head(url)
      if (answer.status === 200) return offsetOf(answer)
      // As `finish`; a HEAD has no body that would tell an overload from others.
      assert.ok([502, 503].includes(answer.status), `${path}: HEAD was answered ${answer.status}`)
    }
  }

  async function finish() {
    for (;;) {
      const offset = await readOffset()
      // A body that is refused while it is sent breaks the connection.
      const answer = await patch(url, offset, bytes.subarray(offset)).catch(ignoreHangUp)
      // The interrupted request may still be under way, a proxy not yet know that a replica is gone, or a service be busy.
      if (answer && ![409, 423, 502, 503].includes(answer.status)) return answer
    }
  }
}

function ignoreHangUp(error: NodeJS.ErrnoException): undefined {
  if (!['EPIPE', 'ECONNRESET'].includes(error.code ?? '')) throw error
}
