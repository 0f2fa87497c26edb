import { expect, test } from 'vitest'
import { start } from '../support/start.ts'

const hosts = '/api/domains/example.com/dns/hosts'

test('a record is removed by its id', async () => {
  await using service = await start()
  const { body } = await service.call('GET', hosts)
  const id = body.hosts?.[0]?.id

  const removed = await service.call('DELETE', `${hosts}/${id}`)
  const again = await service.call('DELETE', `${hosts}/${id}`)
  const read = await service.call('GET', `${hosts}/${id}`)

  expect(removed).toMatchObject({
    status: 200,
    body: { hosts: [], changes: { added: [], removed: [{ id }], kept: 0 } },
  })
  expect([again.status, again.body.code, read.status]).toEqual([404, 'record_not_found', 404])
  expect(service.live()).toEqual([])
})
