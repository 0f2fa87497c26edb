import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { patient } from '../../../../test/support/everything.ts'
import { type Program, run } from '../support/program.ts'
import { boundary, writeForm } from '../support/start.ts'
import { findLosses, makeWriters, writeUntilGone } from '../support/writers.ts'

/** An upload of which half has been sent; `end` sends the rest and resolves with the status. */
function beginUpload(program: Program, token: string, path: string) {
  const form = writeForm([
    { name: 'path', content: path },
    { name: 'file', content: path.repeat(20_000), filename: 'x' },
  ])
  const sent = request({
    port: program.port,
    host: '127.0.0.1',
    method: 'POST',
    path: '/api/files/upload',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': form.length,
    },
    agent: false,
  })
  sent.write(form.subarray(0, form.length / 2))
  const answered = once(sent, 'response')
  return async () => {
    sent.end(form.subarray(form.length / 2))
    const [response] = (await answered) as [IncomingMessage] // As the event is documented.
    await buffer(response)
    return response.statusCode
  }
}

test('SIGTERM in the middle of everything answers what was accepted, keeps what was answered, and exits 0', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'static-stop-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const program = await run(dataDir, patient)
  onTestFinished(() => program.kill())
  const token = await program.logIn()
  const large = randomBytes(20_000_000)
  await program.send(token, 'upload', [{ name: 'file', content: large, filename: 'large' }])
  const paths = Array.from({ length: 8 }, (_, at) => `half/${at}`)
  const uploads = paths.map((path) => beginUpload(program, token, path))
  await expect.poll(() => readdirSync(join(dataDir, 'tmp')).length).toBe(uploads.length)
  const asked = request({ port: program.port, host: '127.0.0.1', path: '/static/large' })
  asked.end()
  const [download] = (await once(asked, 'response')) as [IncomingMessage] // As the event is documented.
  const everybody = makeWriters(4)
  const writing = everybody.map((writer) => writeUntilGone(program, token, writer))

  program.child.kill('SIGTERM')
  const ended = once(program.child, 'close') // At its exit its last lines may not have been read.
  await expect.poll(program.output).toContain('"msg":"stopping"')
  const statuses = await Promise.all(uploads.map((end) => end()))
  const bytes = await buffer(download)
  await Promise.all(writing)
  const [code] = await ended

  expect(statuses).toEqual(paths.map(() => 201))
  expect(bytes.equals(large)).toBe(true)
  expect(code).toBe(0)
  expect(program.output()).toContain('"msg":"stopped"')
  const again = await run(dataDir, patient)
  onTestFinished(() => again.kill())
  for (const writer of everybody) expect(await findLosses(again, token, writer)).toEqual([])
  for (const path of paths) {
    const { status } = await again.ask({ method: 'HEAD', path: `/static/${path}`, headers: {} })
    expect(status).toBe(200)
  }
})
