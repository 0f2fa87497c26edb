import { expect, test } from 'vitest'
import { start } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'

test('beyond 1,000 queued writes of one domain further ones get 503 at once', async () => {
  await using service = await start({ env: { REGISTRAR_TIMEOUT_MS: '60000' } })
  await service.call('GET', '/health')
  service.sandbox.fault({ kind: 'slow', ms: 60_000, command: 'namecheap.domains.dns.getHosts' })
  let answered = 0

  const answers = await Promise.all(
    Array.from({ length: 1_010 }, async () => {
      const answer = await service.call('DELETE', `${hosts}/000000000000`)
      answered += 1
      // None is answered before the registrar but those that do not fit into the queue.
      if (answered === 10) service.sandbox.clearFaults()
      return answer
    }),
  )

  const refused = answers.filter(({ headers }) => headers.get('retry-after') === '10')
  expect(refused).toHaveLength(10)
  expect(new Set(refused.map(({ status, body }) => `${status} ${body.code}`))).toEqual(
    new Set(['503 unavailable']),
  )
  const others = answers.filter((answer) => !refused.includes(answer))
  expect(new Set(others.map(({ status, body }) => `${status} ${body.code}`))).toEqual(
    new Set(['404 record_not_found']),
  )
})
