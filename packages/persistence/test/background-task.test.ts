import { expect, test } from 'vitest'
import { BackgroundTask } from '../src/index.ts'

/** A task whose runs a test ends one by one, with the timers that it has set. */
function openTask() {
  const runs: PromiseWithResolvers<void>[] = []
  const errors: unknown[] = []
  const timers: (() => void)[] = []
  const setTimer = (callback: () => void) => {
    timers.push(callback)
    return { cancel: () => timers.splice(timers.indexOf(callback), 1) }
  }
  const run = () => {
    runs.push(Promise.withResolvers<void>())
    return runs.at(-1)?.promise ?? Promise.resolve()
  }
  const task = new BackgroundTask({ run, onError: (error) => errors.push(error), clock: { now: () => 0, setTimer } })
  return { task, runs, errors, timers }
}

test('a task is started once, runs regularly, and one run at a time', async () => {
  const { task, runs, timers } = openTask()

  void task.start(1000)
  await task.start(1000)
  timers.shift()?.()
  expect([runs.length, timers.length]).toEqual([1, 1])
  runs[0]?.resolve()
  await task.running
  timers.shift()?.()

  expect([runs.length, timers.length]).toEqual([2, 1])
})

test('of failures in a row the first is reported', async () => {
  const { task, runs, errors } = openTask()

  for (const failure of ['one', 'two', undefined, 'three']) {
    const ended = task.run()
    if (failure) runs.at(-1)?.reject(failure)
    else runs.at(-1)?.resolve()
    await ended
    expect(task.isAvailable).toBe(failure === undefined)
  }

  expect(errors).toEqual(['one', 'three'])
})

test('what is new during a run is seen by another one, and the end waits for it', async () => {
  const { task, runs, timers } = openTask()
  void task.start(1000)

  const again = task.runAgain()
  const closed = task.close().then(() => 'closed')
  runs[0]?.resolve()
  await expect.poll(() => runs.length).toBe(2)
  const during = await Promise.race([closed, new Promise((resolve) => setImmediate(resolve, 'running'))])
  runs[1]?.resolve()
  await Promise.all([again, closed])

  expect([during, runs.length, timers.length]).toEqual(['running', 2, 0])
})

test('a run that throws at once is repeated, too', async () => {
  const errors: unknown[] = []
  let runs = 0
  const run = () => {
    runs += 1
    throw runs
  }
  const task = new BackgroundTask({ run, onError: (error) => errors.push(error) })

  await task.run()
  await task.run()

  expect([runs, errors]).toEqual([2, [1]])
})
