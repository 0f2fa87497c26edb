import { Writable } from 'node:stream'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Progress } from '../src/maintenance-command.ts'

beforeEach(() => void vi.useFakeTimers({ now: 0 }))
afterEach(() => void vi.useRealTimers())

const blob = { size: 10_000_000 }

/** A terminal, or none, and what was written to it. */
function makeStream(isTTY: boolean) {
  let written = ''
  const stream = new Writable({
    write(chunk, _encoding, done) {
      written += chunk
      done()
    },
  })
  return { stream: Object.assign(stream, { isTTY }), written: () => written }
}

/** Ten seconds of work at 100 blobs of 10 MB a second. */
function work(progress: Progress) {
  progress.begin('copied', { count: 1000, bytes: 10_000_000_000 })
  for (let count = 0; count < 1000; count += 1) {
    vi.advanceTimersByTime(10)
    progress.blob(blob)
  }
  progress.end()
}

test('without a terminal progress is a line every five seconds', () => {
  const { stream, written } = makeStream(false)

  work(new Progress(stream))

  expect(written().trimEnd().split('\n')).toEqual([
    'copied 500 of 1000 blobs, 5000 of 10000 MB',
    'copied 1000 of 1000 blobs, 10000 of 10000 MB',
  ])
})

test('on a terminal one line is overwritten, and cleared at the end', () => {
  const { stream, written } = makeStream(true)

  work(new Progress(stream))

  const lines = written().split('\r\x1b[K')
  expect(written()).not.toContain('\n')
  expect(lines).toHaveLength(102)
  expect(lines.slice(-2)).toEqual(['copied 1000 of 1000 blobs, 10000 of 10000 MB', ''])
})
