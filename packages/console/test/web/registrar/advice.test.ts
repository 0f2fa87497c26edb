import { expect, test } from 'vitest'
import type { Health, RegistrarState } from '../../../web/api/schema.d.ts'
import { adviceFor } from '../../../web/registrar/advice.js'

const health: Health = { status: 'ok', version: '0.1.0', uptime_seconds: 1, checks: {} }
const state: RegistrarState = {
  registrar: 'sandbox',
  client_ip: '192.0.2.7',
  breaker: 'closed',
  budget: [{ window: 'minute', limit: 20, left: 12, next_free_at: null }],
  calls: [],
  calls_waiting: 0,
  domain_list: { domains: 3, read_at: null, is_reading: false, pages_read: 0, pages: null },
  sweep: { interval_s: 0, is_active: false, domains: 0, seen: 0 },
  last_success_at: '2027-01-15T12:00:00.000Z',
  last_failure: null,
}

test('there is nothing to say while the registrar answers', () => {
  expect(adviceFor(state, health)).toBeUndefined()
})

test('a refused account names the address to whitelist', () => {
  const advice = adviceFor(
    { ...state, last_failure: { at: '2027-01-15T12:01:00.000Z', code: 'registrar_auth' } },
    health,
  )

  expect(advice?.tone).toBe('bad')
  expect(advice?.text).toContain('192.0.2.7')
})

test('a failure before the last success is over', () => {
  const past = { at: '2027-01-15T11:00:00.000Z', code: 'registrar_timeout' }

  expect(adviceFor({ ...state, last_failure: past }, health)).toBeUndefined()
})

test('used up calls are told with the window', () => {
  const budget = [{ window: 'hour' as const, limit: 700, left: 0, next_free_at: null }]

  expect(adviceFor({ ...state, budget }, health)?.title).toContain('hour')
})

test('a failing disk of the service is told', () => {
  expect(adviceFor(state, { ...health, status: 'unavailable' })?.tone).toBe('bad')
})
