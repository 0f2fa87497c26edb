import assert from 'node:assert/strict'
import type { Front, Kind } from './support/fronts.ts'
import { ask, headerOf, through } from './support/wire.ts'

const hosts = ['domains.example.com', 'files.example.com', 'console.example.com', 'example.com']

/** What the examples of docs/proxy do themselves: HSTS, unknown host names and, with nginx, a limit of logins. */
export async function checkEdge(front: Front, kind: Kind) {
  for (const host of hosts) {
    const answer = await ask(through(front, host), '/')
    assert.equal(headerOf(answer, 'strict-transport-security'), 'max-age=31536000', host)
  }
  // No certificate, so no connection.
  await assert.rejects(ask(through(front, 'unknown.example.com'), '/'), {
    code: /^(?:ERR_SSL|EPROTO)/,
  })
  if (kind !== 'nginx') return
  for (const [host, prefix] of [
    ['domains.example.com', ''],
    ['example.com', '/files'],
  ] as const) {
    const side = through(front, host, prefix)
    const body = 'not JSON: the service refuses it without counting a login'
    const headers = { 'content-type': 'application/json' }
    // One login a second from each address, and 40 at once.
    const logins = Array.from({ length: 60 }, () =>
      ask(side, '/api/auth/login', { method: 'POST', headers, body, from: '127.2.0.7' }),
    )
    const types = (await Promise.all(logins))
      .filter(({ status }) => status === 429)
      .map((answer) => headerOf(answer, 'content-type'))
    assert.ok(types.length > 0, `${host}${prefix} does not limit logins`)
    assert.deepEqual([...new Set(types)], ['text/html'])
  }
}
