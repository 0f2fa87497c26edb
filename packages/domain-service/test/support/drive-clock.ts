import { setTimeout as sleep } from 'node:timers/promises'
import { usesPostgres } from './databases.ts'
import type { FakeClock } from './fake-clock.ts'

// Longer than the service takes from one call to the next, or to an answer. Clients of several replicas are answered by
// polling.
const idleMs = usesPostgres ? 150 : 30

/**
 * Awaits a result while a fake clock runs: a second of it whenever the service makes no call for a moment. For waits
 * that only time ends, such as a pause before a zone is read again.
 */
export async function driveClock<Result>(
  clock: FakeClock,
  { sandbox }: { sandbox: { calls: readonly { outcome: string }[] } },
  result: Promise<Result>,
): Promise<Result> {
  let isSettled = false
  const settle = () => {
    isSettled = true
  }
  result.then(settle, settle)
  let seen = -1
  while (!isSettled) {
    const isIdle = sandbox.calls.length === seen
    const isBusy = sandbox.calls.some(({ outcome }) => outcome === 'under way')
    seen = sandbox.calls.length
    if (isIdle && !isBusy) await clock.advance(1_000)
    await Promise.race([result.catch(() => undefined), sleep(idleMs)])
  }
  return result
}
