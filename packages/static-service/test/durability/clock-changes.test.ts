import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Program, run } from '../support/program.ts'
import { startSharedStores } from '../support/shared-stores.ts'

const day = 86_400_000

/** The service, with a clock to set. */
async function startWithClock(shift: number, env: Record<string, string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'static-clock-'))
  const clock = join(folder, 'clock')
  const set = (milliseconds: number) => writeFileSync(clock, String(milliseconds))
  set(shift)
  const program = await run(join(folder, 'data'), {
    ...env,
    CLOCK_SHIFT: clock,
    NODE_OPTIONS: `--import ${join(import.meta.dirname, '../support/shift-clock.ts')}`,
  })
  onTestFinished(async () => {
    await program.kill()
    rmSync(folder, { recursive: true, force: true })
  })
  const put = (token: string, content: string) =>
    program.send(token, 'upload', [{ name: 'file', content, filename: 'a.txt' }])
  const get = (headers: Record<string, string> = {}) => program.ask({ method: 'GET', path: '/static/a.txt', headers })
  return { program, set, put, get }
}

test('a file that is replaced after the clock was set back is served anew, and is not of the future', async () => {
  const { program, set, put, get } = await startWithClock(day)
  const token = await program.logIn()
  await put(token, 'old')
  const old = await get()
  set(0)

  const whileOld = await get()
  const replaced = await put(token, 'new')
  const conditional = await get({ 'if-none-match': String(old.headers.etag) })
  const { status } = await program.ask({
    method: 'DELETE',
    path: '/api/files/a.txt',
    headers: { authorization: `Bearer ${token}` },
  })

  expect([replaced.status, conditional.status, status]).toEqual([200, 200, 204])
  expect([whileOld.bytes.toString(), conditional.bytes.toString()]).toEqual(['old', 'new'])
  const { headers } = conditional
  // Within the second of the change there is no date at all (RFC 9110, 8.8.2.2).
  const changed = Date.parse(String(headers['last-modified'] ?? headers.date))
  expect(changed).toBeLessThanOrEqual(Date.parse(String(headers.date)))
  expect((await get()).status).toBe(404)
})

test('a client with the date of a file gets what replaces it, whatever the clock did', async () => {
  const { program, set, put, get } = await startWithClock(day)
  const token = await program.logIn()
  await put(token, 'old')
  set(day + 2000) // Within the second of the change there is no date.
  const date = String((await get()).headers['last-modified'])
  set(0)
  await put(token, 'replaced')
  set(day + 4000)
  const replaced = await get({ 'if-modified-since': date })
  set(0)
  const headers = { authorization: `Bearer ${token}` }
  await program.ask({ method: 'DELETE', path: '/api/files/a.txt', headers })
  await put(token, 'stored again')
  set(day + 8000)

  const again = await get({ 'if-modified-since': String(replaced.headers['last-modified']) })

  expect([replaced.status, replaced.bytes.toString()]).toEqual([200, 'replaced'])
  expect([again.status, again.bytes.toString()]).toEqual([200, 'stored again'])
})

test('a clock that is set forward ends tokens, and nothing else', async () => {
  const { program, set, put, get } = await startWithClock(0)
  const token = await program.logIn()
  await put(token, 'kept')
  set(2000) // Within the second of the change there is no date.
  const before = await get()
  set(day)

  const refused = await put(token, 'refused')
  const after = await get({ 'if-modified-since': String(before.headers['last-modified']) })

  expect([refused.status, refused.body.code]).toEqual([401, 'token_expired'])
  expect(after.status).toBe(304)
  expect((await put(await program.logIn(), 'new')).status).toBe(200)
})

test('replicas whose clocks differ by hours accept the sessions and links of each other, and send no date of their future', async () => {
  await using stores = await startSharedStores()
  const shifts = [0, 2, -2]
  const replicas: { program: Program; token: string }[] = []
  for (const hours of shifts) {
    const { program } = await startWithClock(hours * 3_600_000, stores.env)
    replicas.push({ program, token: await program.logIn() })
  }
  const [first] = replicas
  await first?.program.send(first.token, 'upload', [{ name: 'file', content: 'x', filename: 'a' }])

  for (const { program, token } of replicas) {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ path: 'a', expires_in: 600 })
    const made = await program.ask({ method: 'POST', path: '/api/links', headers, body })
    const link = new URL(String(made.body.url), 'http://localhost').pathname
    for (const { program: other } of replicas) {
      const listed = await other.ask({ method: 'GET', path: '/api/files/', headers })
      const read = await other.ask({ method: 'GET', path: link, headers: {} })
      expect([made.status, listed.status, read.status]).toEqual([201, 200, 200])
    }
  }
  const isDated = async ({ program }: (typeof replicas)[number]) =>
    'last-modified' in (await program.ask({ method: 'GET', path: '/static/a', headers: {} })).headers
  const areDated = () => Promise.all(replicas.map(isDated))
  // Within the second of the change there is no date. One later than `Date` must not be sent (RFC 9110, 8.8.2.1).
  await expect.poll(areDated).toEqual([true, true, false])
})
