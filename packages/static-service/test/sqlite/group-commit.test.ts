import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { GroupCommit } from '../../src/sqlite/group-commit.ts'

/** Records its groups; the oldest one ends when `release` is called. A command in capitals is large. */
function recordGroups(atOnce = 1) {
  const groups: string[][] = []
  const releases: (() => void)[] = []
  const commits = new GroupCommit<string, string>(
    async (commands) => {
      groups.push(commands)
      await new Promise<void>((resolve) => {
        releases.push(resolve)
      })
      return commands.map((command) => `${command} done`)
    },
    { atOnce, isLarge: (command) => command === command.toUpperCase() },
  )
  return { commits, groups, release: () => releases.shift()?.() }
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

test('two groups at once: one of them large, and others between two large ones', async () => {
  const { commits, groups, release } = recordGroups(2)
  const submit = async (command: string) => {
    const submitted = commits.submit(command)
    await nextTurn()
    return submitted
  }
  const all = [submit('a'), submit('b'), submit('c'), submit('d')]
  await nextTurn()
  all.push(submit('A'), submit('B'), submit('e'))
  await nextTurn()
  for (let ended = 0; ended < 6; ended += 1) {
    release()
    await nextTurn()
    if (ended === 1) all.push(submit('f'))
    await nextTurn()
  }

  await Promise.all(all)
  expect(groups).toEqual([['a', 'b', 'c', 'd'], ['e'], ['A'], ['f'], ['B']])
})

test('a group that fails rejects its commands and no others; an outage rejects those that wait, too', async () => {
  const failures = [new Error('broken'), undefined, new Error('outage')]
  const commits = new GroupCommit<string, string>(
    async (commands) => {
      const failure = failures.shift()
      if (failure) throw failure
      return commands
    },
    { isOutage: (error) => error instanceof Error && error.message === 'outage' },
  )
  const outcomeOf = (command: string) => commits.submit(command).catch((error) => error.message)

  expect(await outcomeOf('a')).toBe('broken')
  expect(await outcomeOf('b')).toBe('b')
  // More than one group takes.
  const many = await Promise.all(Array.from({ length: 70 }, (_, at) => outcomeOf(`c${at}`)))
  expect(new Set(many)).toEqual(new Set(['outage']))
})
