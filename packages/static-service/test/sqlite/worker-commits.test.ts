import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { GroupCommit } from '../../src/sqlite/worker-commits.ts'

/** Records its groups; a group ends when `release` is called. */
function recordGroups() {
  const groups: string[][] = []
  let release: () => void = () => undefined
  const commits = new GroupCommit<string, string>(async (commands) => {
    groups.push(commands)
    await new Promise<void>((resolve) => {
      release = resolve
    })
    return commands.map((command) => ({ value: `${command} done` }))
  })
  return { commits, groups, release: () => release() }
}

test('commands of one event-loop iteration are one group, and those that arrive meanwhile the next', async () => {
  const { commits, groups, release } = recordGroups()

  const first = [commits.submit('a')]
  await Promise.resolve()
  first.push(commits.submit('b'), commits.submit('c'))
  await nextTurn()
  const second = [commits.submit('d'), commits.submit('e')]
  await nextTurn()
  expect(groups).toEqual([['a', 'b', 'c']])
  expect(commits.queued).toBe(2)
  release()
  expect(await Promise.all(first)).toEqual(['a done', 'b done', 'c done'])
  await nextTurn()
  release()

  expect(await Promise.all(second)).toEqual(['d done', 'e done'])
  expect(groups).toEqual([
    ['a', 'b', 'c'],
    ['d', 'e'],
  ])
})

test('after the last group the next command is committed again', async () => {
  const { commits, groups, release } = recordGroups()
  for (const command of ['a', 'b']) {
    const submitted = commits.submit(command)
    await nextTurn()
    release()
    expect(await submitted).toBe(`${command} done`)
  }

  expect(groups).toEqual([['a'], ['b']])
  expect(commits.queued).toBe(0)
})

test('a group that fails rejects its commands and those that wait; later ones are committed', async () => {
  const failures = [new Error('outage')]
  const commits = new GroupCommit<string, string>(async (commands) => {
    const failure = failures.shift()
    if (failure) throw failure
    return commands.map((value) => ({ value }))
  })
  const outcomeOf = (command: string) => commits.submit(command).catch((error) => error.message)

  // More than one group takes.
  const many = await Promise.all(Array.from({ length: 70 }, (_, at) => outcomeOf(`c${at}`)))
  expect(new Set(many)).toEqual(new Set(['outage']))
  expect(await outcomeOf('b')).toBe('b')
})

test('a command that fails with a text instead of an error fails alone', async () => {
  const commits = new GroupCommit<string, string>(async () => [{ error: 'a text' }, { value: 'done' }])

  const ends = await Promise.allSettled([commits.submit('a'), commits.submit('b')])

  expect(ends).toEqual([
    { status: 'rejected', reason: 'a text' },
    { status: 'fulfilled', value: 'done' },
  ])
})
