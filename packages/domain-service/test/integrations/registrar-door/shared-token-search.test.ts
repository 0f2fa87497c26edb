import { expect, test } from 'vitest'
import { chooseGiven, differenceOf } from '../../../src/integrations/registrar-door/merge.ts'
import type { GivenZone, KnownZone } from '../../../src/ledger/given-zones.ts'

// Every order, up to a number of steps, in which processes that share a token read the zone, and write it with other records
// of their own, while one other writer adds a record. Where answers are lost, a process sends its list again or reads again.
// A zone is a string, and each letter is a record: those of a process are named with it, `x` is of the other writer.

const domain = 'example.com'
const others = 'x'

const zoneOf = (letters: string): KnownZone => ({
  records: [...letters].map((name) => ({ name, type: 'TXT', address: name })),
})
const sorted = (letters: Iterable<string>) => [...new Set(letters)].sort().join('')
const without = (letters: string, left: string) =>
  [...letters].filter((each) => !left.includes(each)).join('')
/** `live` with what makes `list` of `base`. */
const merge = (live: string, base: KnownZone, list: string) => {
  const { present, absent } = differenceOf(base, zoneOf(list), domain).edit
  const left = absent.map(({ name }) => name).join('')
  return sorted(without(live, left) + present.map(({ name }) => name).join(''))
}

interface Given {
  kind: GivenZone['kind']
  copies: number
  zone: string
  base?: KnownZone
}

interface Process {
  /** The zone that it knows, and may write a list made of. */
  known?: string
  /** The list that it has no answer to. */
  unanswered?: string
}

interface State {
  live: string
  /** What the other writer, and each process with its last list, want to have. */
  wanted: string
  given: Given[]
  processes: Process[]
  /** Records that a list has removed, though its process did not mean to. */
  lost?: string
}

interface Model {
  /** The records of each process. */
  owners: string[]
  /** What the zone has at first. */
  first: string
  losesAnswers: boolean
  /** Processes that have written write again without reading. */
  goesOn?: boolean
}

function read(state: State, index: number): State {
  const isEqual = ({ kind, zone }: Given) => kind === 'read' && zone === state.live
  const copies = state.given.filter(isEqual).reduce((sum, each) => sum + each.copies, 1)
  const given = state.given.filter((each) => !isEqual(each))
  const processes = state.processes.with(index, { known: state.live })
  return { ...state, processes, given: [...given, { kind: 'read', copies, zone: state.live }] }
}

interface Writing {
  list: string
  own: string
  isAnswered: boolean
  goesOn: boolean | undefined
}

function write(state: State, index: number, { list, own, isAnswered, goesOn }: Writing): State {
  const zones = state.given.map((each, id) => ({ ...each, id, zone: zoneOf(each.zone) }))
  const chosen = chooseGiven(zones, zoneOf(list), domain)
  if (!chosen) throw new Error('nothing was given')
  const given = state.given.map((each, id) =>
    chosen.isCertain && id === chosen.used.id ? { ...each, copies: each.copies - 1 } : each,
  )
  const kind = isAnswered && !chosen.mayRepeat ? 'done' : 'unanswered'
  const live = merge(state.live, chosen.base, list)
  const removed = without(without(state.live, live), own)
  const answered = goesOn ? { known: list } : {}
  const unanswered = { ...state.processes[index], unanswered: list }
  return {
    live,
    lost: [...removed].filter((each) => state.wanted.includes(each)).join(''),
    wanted: sorted(without(state.wanted, own) + without(own, without(own, list))),
    given: [...given, { kind, copies: 1, zone: list, base: chosen.base }],
    processes: state.processes.with(index, isAnswered ? answered : unanswered),
  }
}

function* stepsOf(
  state: State,
  { owners, losesAnswers, goesOn }: Model,
): Iterable<[string, State]> {
  const [live, wanted] = [sorted(state.live + others), sorted(state.wanted + others)]
  if (!state.wanted.includes(others)) yield ['another adds x', { ...state, live, wanted }]
  for (const [index, { known, unanswered }] of state.processes.entries()) {
    const own = owners[index] ?? ''
    yield [`${own} reads`, read(state, index)]
    if (known === undefined) continue
    const lists = unanswered === undefined ? listsOf(known, own) : [unanswered]
    for (const list of lists)
      for (const isAnswered of losesAnswers ? [true, false] : [true])
        yield [
          `${own} writes ${list || 'nothing'}${isAnswered ? '' : ', unanswered'}`,
          write(state, index, { list, own, isAnswered, goesOn }),
        ]
  }
}

/** The zone with each other part of a process's own records. */
function listsOf(known: string, own: string): string[] {
  const parts = [...own].reduce((all, each) => all.flatMap((part) => [part, part + each]), [''])
  return parts.map((part) => sorted(without(known, own) + part)).filter((list) => list !== known)
}

/** All states that so many steps lead to, and the steps to those in which a record is lost. */
function explore(model: Model, depth: number) {
  const seen = new Set<string>()
  const losses: string[] = []
  const { first } = model
  const processes = model.owners.map(() => ({}))
  let states: [string, State][] = [['', { live: first, wanted: first, given: [], processes }]]
  for (let step = 0; step < depth; step++) {
    const next: [string, State][] = []
    for (const [path, state] of states)
      for (const [name, reached] of stepsOf(state, model)) {
        const text = JSON.stringify(reached)
        if (seen.has(text)) continue
        seen.add(text)
        if (reached.lost) losses.push(`${path}; ${name}: ${reached.lost} is lost`)
        else next.push([`${path}; ${name}`, reached])
      }
    states = next
  }
  return { losses, states: seen.size }
}

test.each([
  // [processes, the zone at first, lost answers, steps, states at least]
  [['a', 'b'], '', 'no', 9, 10_000],
  [['a', 'b'], 'ab', 'no', 9, 10_000],
  [['ac', 'b'], '', 'no', 8, 10_000],
  [['ac', 'b'], 'ab', 'no', 8, 10_000],
  [['a', 'b'], '', 'some', 7, 10_000],
  [['a', 'b'], 'ab', 'some', 7, 10_000],
  [['a', 'b', 'c'], '', 'some', 6, 10_000],
])(
  'of processes %j that share a token and read before each write, with %j at first and %s lost answers, none loses a record of another in any %i steps',
  (owners, first, answers, steps, least) => {
    const { losses, states } = explore({ owners, first, losesAnswers: answers === 'some' }, steps)

    expect(losses.slice(0, 3)).toEqual([])
    expect(states).toBeGreaterThan(least)
  },
)

test('processes that share a token and write again without reading lose no record of other writers in any 7 steps', () => {
  const model = { owners: ['a', 'b'], first: '', losesAnswers: false, goesOn: true }

  const { losses, states } = explore(model, 7)

  expect(losses.filter((each) => each.endsWith('x is lost'))).toEqual([])
  expect(states).toBeGreaterThan(1_000)
})
