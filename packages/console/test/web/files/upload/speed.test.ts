import { expect, test } from 'vitest'
import { SpeedMeter } from '../../../../web/files/upload/speed.js'

test('speed is averaged over the last seconds', () => {
  const meter = new SpeedMeter()
  for (const [at, value] of [
    [0, 0],
    [1000, 500],
    [2000, 2000],
  ] as const) {
    meter.add(value, at)
  }

  expect(meter.perSecond).toBe(1000)
})

test('speed is unknown at first, and forgets what is long ago', () => {
  const meter = new SpeedMeter()
  meter.add(1_000_000, 0)

  expect(meter.perSecond).toBe(0)
  meter.add(1_000_000, 10_000)
  meter.add(1_000_100, 11_000)
  expect(meter.perSecond).toBe(100)
})
