import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { usesPostgres } from './databases.ts'
import type { FakeClock } from './fake-clock.ts'

// Longer than the pauses of a batch in which further writes may join it; replicas make longer ones.
const idleMs = usesPostgres ? 150 : 30

/** What goes from the service to the registrar and back takes fewer turns of the event loop, however slow the machine. */
const idleTurns = 100

/** Between two statements of a transaction the service looks quiet for a moment, hardly so many times in a row. */
const samples = 5

/**
 * Awaits a result while a fake clock runs: a second of it, or `stepMs`, whenever the service makes no call and has nothing to
 * do. For waits that only time ends, such as a pause before a zone is read again.
 */
export async function driveClock<Result>(
  clock: FakeClock,
  { sandbox }: { sandbox: { calls: readonly { outcome: string }[] } },
  result: Promise<Result>,
  stepMs = 1_000,
): Promise<Result> {
  let isSettled = false
  const settle = () => {
    isSettled = true
  }
  result.then(settle, settle)
  for (let seen = -1; !isSettled; ) {
    await Promise.race([result.catch(() => undefined), sleep(idleMs)])
    const isIdle = (await isQuiet(clock)) && sandbox.calls.length === seen
    const isBusy = sandbox.calls.some(({ outcome }) => outcome === 'under way')
    seen = sandbox.calls.length
    if (isIdle && !isBusy && !isSettled) await clock.advance(stepMs)
  }
  return result
}

async function isQuiet(clock: FakeClock): Promise<boolean> {
  for (let sample = 0; sample < samples; sample++) {
    for (let n = 0; n < idleTurns; n++) await turn()
    if (!clock.isQuiet()) return false
  }
  return true
}
