import fc from 'fast-check'
import { expect, test } from 'vitest'
import { chooseGiven, differenceOf } from '../../../src/integrations/registrar-door/merge.ts'
import { type ClientZone, GivenZones } from '../../../src/ledger/given-zones.ts'
import { makeDatabase, usesPostgres } from '../../support/databases.ts'
import { openEmbedded } from '../../support/ledger.ts'

// A model of tools that share a token. Each reads the zone, before some writes more than once as DNSControl does, and writes
// it with a change of its own records; others add records meanwhile. Some tools do not get their answers, and then send
// their list again, or read again. The model knows which zone each list was made from.

const domain = 'example.com'

/** Each record is `name value`; those of a tool begin with its letter. */
const zoneOf = (records: Iterable<string>): ClientZone => ({
  records: [...records].map((each) => {
    const [name = '', address = ''] = each.split(' ')
    return { name, type: 'TXT', address }
  }),
})
const recordsOf = (records: { name: string; address: string }[]) =>
  records.map(({ name, address }) => `${name} ${address}`)

function merge(live: Iterable<string>, base: ClientZone, list: ClientZone): Set<string> {
  const { present, absent } = differenceOf(base, list).edit
  const left = new Set(recordsOf(absent))
  return new Set([...live, ...recordsOf(present)].filter((each) => !left.has(each)))
}

interface Job {
  id: number
  tool: string
  list: ClientZone
  base: ClientZone
  /** The zone that the list was made from. */
  read: ClientZone
  isAwaited: boolean
  mayRepeat: boolean
  isDone: boolean
}

class Door {
  readonly #given: GivenZones
  readonly #to: { token: string; domain: string }
  #live = new Set(['www 1'])
  /** What others and the last list of each tool want to have. */
  readonly #wanted = new Set(this.#live)
  #jobs: Job[] = []
  lists = 0
  readonly lost: string[] = []
  /** Records that a tool wrote, and that its acknowledged list did not bring. */
  readonly unwritten: string[] = []
  /** Lists that had another effect than on the zone that they were made from. */
  readonly inexact: string[] = []

  constructor(given: GivenZones, token: string) {
    this.#given = given
    this.#to = { token, domain }
  }

  addOutside(record: string) {
    for (const records of [this.#live, this.#wanted]) records.add(record)
  }

  async read(): Promise<string[]> {
    const shown = this.#jobs.reduce((zone, { base, list }) => merge(zone, base, list), this.#live)
    const base = this.#jobs.length > 0 ? zoneOf(this.#live) : undefined
    await this.#given.add(this.#to, { zone: zoneOf(shown), base })
    return [...shown]
  }

  /** @returns undefined where the tool is told to read the zone again. */
  async write(tool: string, read: string[], records: string[]): Promise<Job | undefined> {
    const list = zoneOf(records)
    const choose = (given: Parameters<typeof chooseGiven>[0]) => chooseGiven(given, list)
    const chosen = await this.#given.replace(this.#to, list, choose)
    if (!chosen) throw new Error('nothing was given')
    const { id, base, mayRepeat, isUnclear } = chosen
    if (isUnclear) return undefined
    const job = {
      id,
      tool,
      list,
      base,
      mayRepeat,
      read: zoneOf(read),
      isAwaited: true,
      isDone: false,
    }
    this.#jobs.push(job)
    this.lists++
    for (const each of this.#wanted) if (each.startsWith(tool)) this.#wanted.delete(each)
    for (const each of records) if (each.startsWith(tool)) this.#wanted.add(each)
    return job
  }

  async carryOut() {
    for (const job of this.#jobs) {
      const before = this.#live
      const exact = merge(before, job.read, job.list)
      this.#live = merge(before, job.base, job.list)
      const others = [...before].filter((each) => this.#wanted.has(each) && !each.startsWith(job.tool))
      this.lost.push(...others.filter((each) => !this.#live.has(each)))
      const isExact = String([...exact].sort()) === String([...this.#live].sort())
      if (!isExact) this.inexact.push(`${[...exact]} is ${[...this.#live]}`)
      const own = recordsOf(job.list.records).filter((each) => each.startsWith(job.tool))
      this.unwritten.push(...own.filter((each) => !this.#live.has(each)))
      job.isDone = true
      await this.#given.confirm(job.id, job.isAwaited && !job.mayRepeat)
    }
    this.#jobs = []
  }
}

/** A whole number below this one. */
type Chance = (below: number) => number

interface Kind {
  previews: boolean
  losesAnswers: boolean
}

async function* runTool(door: Door, tool: string, { previews, losesAnswers, chance }: Kind & { chance: Chance }) {
  let past: string[][] = [[]]
  for (let step = 0; step < 6; step++) {
    for (let n = previews ? chance(3) : 0; n > 0; n--) await door.read()
    const seen = await door.read()
    const own = seen.filter((each) => each.startsWith(tool))
    const next = changeOf(own, { tool, past: past.slice(-1), chance })
    yield
    // They write nothing that is there.
    if (String(next.toSorted()) === String(own.toSorted())) continue
    past = [...past, own]
    let isRepeated = true
    while (isRepeated) {
      const others = seen.filter((each) => !each.startsWith(tool))
      const job = await door.write(tool, seen, [...others, ...next])
      if (!job) break
      job.isAwaited = !losesAnswers || chance(6) > 0
      while (!job.isDone && job.isAwaited) yield
      for (let n = chance(3); !job.isAwaited && n > 0; n--) yield
      isRepeated = !job.isAwaited && chance(2) > 0
    }
  }
}

/** One record added, removed or changed, or an earlier state. */
function changeOf(own: string[], { tool, past, chance }: { tool: string; past: string[][]; chance: Chance }) {
  const one = own[chance(own.length)]
  const others = own.filter((each) => each !== one)
  const earlier = past[chance(past.length)] ?? []
  const value = chance(1_000_000)
  const kinds = [
    [...own, `${tool}${value} ${value}`],
    others,
    one ? [...others, `${one.split(' ')[0]} ${value}`] : [...own, `${tool}${value} ${value}`],
    earlier,
  ]
  return kinds[chance(kinds.length)] ?? own
}

function chanceOf(seed: number): Chance {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

async function runModel(given: GivenZones, tools: number, kind: Kind & { seed: number; token: string }) {
  const chance = chanceOf(kind.seed)
  const door = new Door(given, kind.token)
  let running = [...'abcdefghijkl'].slice(0, tools).map((tool) => runTool(door, tool, { ...kind, chance }))
  while (running.length > 0) {
    const at = chance(running.length + 1)
    if (chance(20) === 0) door.addOutside(`x${chance(1_000_000)} 1`)
    if (at === running.length) await door.carryOut()
    else if ((await running[at]?.next())?.done) running = running.filter((_, n) => n !== at)
  }
  await door.carryOut()
  return door
}

async function openGiven(): Promise<{ given: GivenZones } & AsyncDisposable> {
  if (!usesPostgres) return { given: new GivenZones(openEmbedded()), [Symbol.asyncDispose]: async () => undefined }
  const database = await makeDatabase()
  return {
    given: new GivenZones(database.postgres),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

test.each([
  // [tools, reads before a write, lost answers, runs, of how many lists one may be inexact]
  [1, 'one', 'no', 60, Infinity],
  [1, 'several', 'no', 60, Infinity],
  [1, 'several', 'some', 60, 20],
  [2, 'one', 'no', 60, 20],
  [2, 'several', 'some', 60, 20],
  [4, 'several', 'no', 20, 20],
  [12, 'one', 'no', 3, 20],
  [4, 'several', 'some', 20, 20],
  [12, 'one', 'some', 3, 20],
])(
  '%i tools with %s reads before a write and %s lost answers keep each other’s records in %i orders, and one alone is exact',
  async (tools, reads, answers, runs, exactness) => {
    await using opened = await openGiven()
    const kind = { previews: reads === 'several', losesAnswers: answers === 'some' }
    const doors: Door[] = []
    for (const seed of fc.sample(fc.noShrink(fc.nat()), runs))
      doors.push(await runModel(opened.given, tools, { ...kind, seed, token: `${doors.length}` }))

    const [lists, inexact] = [doors.reduce((sum, door) => sum + door.lists, 0), doors.flatMap((door) => door.inexact)]
    expect(doors.flatMap((door) => [...door.lost, ...door.unwritten])).toEqual([])
    expect(inexact.length).toBeLessThanOrEqual(lists / exactness)
  },
)
