import fc from 'fast-check'
import { expect, test } from 'vitest'
import { chooseGiven, differenceOf } from '../../../src/integrations/registrar-door/merge.ts'
import type { GivenZone, KnownZone } from '../../../src/ledger/given-zones.ts'

// A model of processes that share a token. Each reads, adds a record of its own, reads again and leaves it out, as lego
// does; some do not get their answers, and then send their list again, or read.

const domain = 'example.com'
const zoneOf = (names: Iterable<string>): KnownZone => ({
  records: [...names].sort().map((name) => ({ name, type: 'TXT', address: name })),
})
const namesOf = ({ records }: KnownZone) => records.map(({ name }) => name)

interface Job {
  list: GivenZone
  isDone: boolean
}

class Door {
  readonly live = new Set(['www'])
  readonly #owners = new Map<string, number>()
  #given: GivenZone[] = []
  #jobs: Job[] = []
  #id = 0
  readonly lost: string[] = []

  read(): string[] {
    const zone = zoneOf(this.#jobs.reduce(withJob, this.live))
    const base = this.#jobs.length > 0 ? zoneOf(this.live) : undefined
    this.#given.push({ id: this.#id++, state: 'read', zone, base })
    return namesOf(zone)
  }

  write(process: number, names: string[]): Job {
    const zone = { records: names.map((name) => ({ name, type: 'TXT', address: name })) }
    const chosen = chooseGiven(this.#given, zone, domain)
    if (!chosen) throw new Error('nothing was given')
    const list: GivenZone = { id: this.#id++, state: 'answered', zone, base: chosen.base }
    this.#given = [...this.#given.filter((each) => each !== chosen.used), list]
    const { present, absent } = differenceOf(chosen.base, zone, domain).edit
    for (const { name } of present) if (!this.#owners.has(name)) this.#owners.set(name, process)
    this.lost.push(
      ...absent.flatMap(({ name }) =>
        this.live.has(name) && this.#owners.get(name) !== process && !this.removed.has(name)
          ? [name]
          : [],
      ),
    )
    const job = { list, isDone: present.length + absent.length === 0 }
    if (!job.isDone) this.#jobs.push(job)
    return job
  }

  /** The records that their processes have taken back. */
  readonly removed = new Set<string>()

  carryOut() {
    for (const job of this.#jobs) {
      const live = withJob(this.live, job)
      this.live.clear()
      for (const name of live) this.live.add(name)
      job.list.base = undefined
      job.isDone = true
    }
    this.#jobs = []
  }
}

function withJob(names: Set<string>, { list }: Job): Set<string> {
  const { present, absent } = differenceOf(list.base ?? list.zone, list.zone, domain).edit
  const left = new Set(absent.map(({ name }) => name))
  return new Set([...names, ...present.map(({ name }) => name)].filter((name) => !left.has(name)))
}

/** A whole number below this one. */
type Chance = (below: number) => number

function* runProcess(door: Door, number: number, chance: Chance) {
  for (let n = 0; n < 2; n++) {
    const own = `a${number}-${n}`
    const seen = door.read()
    yield
    yield* send([...seen, own])
    for (let left = chance(6); left > 0; left--) yield
    const known = door.read()
    yield
    door.removed.add(own)
    if (known.includes(own)) yield* send(known.filter((name) => name !== own))
  }

  function* send(names: string[]) {
    for (;;) {
      const job = door.write(number, names)
      const isLate = chance(8) === 0
      while (!isLate && !job.isDone) yield
      const isLost = isLate || chance(8) === 0
      job.list.state = isLost ? 'submitted' : 'answered'
      if (!isLost || number % 2) return
      yield
    }
  }
}

function chanceOf(seed: number): Chance {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

function runModel(processes: number, chance: Chance) {
  const door = new Door()
  const running = Array.from({ length: processes }, (_, n) => runProcess(door, n, chance))
  while (running.length > 0) {
    const at = chance(running.length + 1)
    if (at === running.length) door.carryOut()
    else if (running[at]?.next().done) running.splice(at, 1)
  }
  door.carryOut()
  return { lost: door.lost, left: [...door.live].filter((name) => name !== 'www') }
}

test.each([
  // [processes, orders that are tried, how many of them may leave a record that was taken back]
  [1, 200, 0],
  [2, 200, 40],
  [3, 200, 40],
  [5, 100, 30],
  [12, 20, 20],
])(
  '%i processes that share a token lose no record in %i orders, and leave one in at most %i',
  (processes, numRuns, most) => {
    const seeds = fc.sample(fc.noShrink(fc.integer()), { seed: 1, numRuns })

    const ends = seeds.map((seed) => runModel(processes, chanceOf(seed)))

    expect(ends.flatMap(({ lost }) => lost)).toEqual([])
    expect(ends.filter(({ left }) => left.length > 0).length).toBeLessThanOrEqual(most)
  },
)
