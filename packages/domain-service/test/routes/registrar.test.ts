import { expect, test } from 'vitest'
import { start } from '../support/start.ts'

const named = expect.stringMatching(/^127\.0\.0\.1:\d+$/)

test('health and the registrar page say which registrar the service calls', async () => {
  await using service = await start()

  const health = await service.call('GET', '/health')
  const state = await service.call('GET', '/api/registrar')

  expect(health.body).toMatchObject({ checks: { registrar: { status: 'ok', registrar: named } } })
  expect(state.body).toMatchObject({ registrar: named })
})
