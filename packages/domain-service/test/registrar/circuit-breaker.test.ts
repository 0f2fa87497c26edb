import { expect, test } from 'vitest'
import { CircuitBreaker } from '../../src/registrar/circuit-breaker.ts'
import { FakeClock } from '../support/fake-clock.ts'

test('after five failures in a row calls fail fast, then one probes', async () => {
  const clock = new FakeClock()
  const breaker = new CircuitBreaker({ now: clock.now })
  for (let failure = 0; failure < 5; failure++) {
    breaker.admit()
    breaker.failed()
  }
  expect(() => breaker.admit()).toThrow(
    expect.objectContaining({
      status: 503,
      code: 'registrar_unavailable',
      headers: { 'retry-after': '5' },
    }),
  )

  await clock.advance(5_000)
  expect(breaker.state).toBe('half_open')
  breaker.admit()
  expect(() => breaker.admit()).toThrow('several times in a row')
  breaker.succeeded()

  expect(breaker.state).toBe('closed')
  expect(() => breaker.admit()).not.toThrow()
})

test('a failed probe opens it again; a probe that was not made leaves it to the next call', async () => {
  const clock = new FakeClock()
  const breaker = new CircuitBreaker({ threshold: 1, now: clock.now })
  breaker.failed()
  await clock.advance(5_000)
  breaker.admit()
  breaker.skipped()
  breaker.admit()
  breaker.failed()

  expect(breaker.state).toBe('open')
})

test('a success resets the count of failures', () => {
  const breaker = new CircuitBreaker({ threshold: 2 })
  breaker.failed()
  breaker.succeeded()
  breaker.failed()

  expect(breaker.state).toBe('closed')
})
