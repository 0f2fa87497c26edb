import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { CircuitBreaker } from '../../src/registrar/circuit-breaker.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000_000_000 })
})
afterEach(() => {
  vi.useRealTimers()
})

test('after five failures in a row calls fail fast, then one probes', () => {
  const breaker = new CircuitBreaker()
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

  vi.advanceTimersByTime(5_000)
  expect(breaker.state).toBe('half_open')
  breaker.admit()
  expect(() => breaker.admit()).toThrow('several times in a row')
  breaker.succeeded()

  expect(breaker.state).toBe('closed')
  expect(() => breaker.admit()).not.toThrow()
})

test('a failed probe opens it again; a probe that was not made leaves it to the next call', () => {
  const breaker = new CircuitBreaker({ threshold: 1 })
  breaker.failed()
  vi.advanceTimersByTime(5_000)
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
