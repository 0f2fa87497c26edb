import { expect, test } from 'vitest'
import { ask, start } from '../support/start.ts'

const logIn = async (port: number, username: string, forwarded: string) => {
  const { status } = await ask(port, {
    method: 'POST',
    path: '/api/auth/login',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': forwarded },
    body: JSON.stringify({ username, password: 'wrong' }),
  })
  return status
}

const fields = Array.from({ length: 10 }, (_, at) => `198.51.100.${at}`)

test.each([
  ['', '203.0.113.7', 'nobody is believed, so all come from one address'],
  ['1', '198.51.100.9, 203.0.113.7', 'the proxy is believed, not what the client wrote before it'],
])('wrong logins with TRUST_PROXY=%s count for the true client: %s, since %s', async (trust, last) => {
  await using service = await start({ env: { TRUST_PROXY: trust } })
  const named = (pretended: string) => (trust ? `${pretended}, 203.0.113.7` : pretended)

  const statuses: number[] = []
  for (const field of fields) {
    statuses.push(await logIn(service.port, 'somebody', named(field)))
  }
  const eleventh = await logIn(service.port, 'somebody', last)
  const other = await logIn(service.port, 'somebody', '192.0.2.1')

  expect(statuses).toEqual(Array(10).fill(401))
  expect([eleventh, other]).toEqual([429, trust ? 401 : 429])
})
