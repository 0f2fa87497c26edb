import type { Call, Fault, FaultInput, Sandbox } from '@domains-and-files/registrar-sandbox'

const getHosts = 'namecheap.domains.dns.getHosts'
const setHosts = 'namecheap.domains.dns.setHosts'

const pick = <Value>(values: readonly Value[]): Value => {
  const value = values[Math.floor(Math.random() * values.length)]
  if (value === undefined) throw new RangeError('nothing to pick')
  return value
}

const maxPending = 4

/** How long after a send its registrar may show the zone before: half of the time for which the service expects it. */
const maxOutdatedMs = 30_000

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/**
 * A send follows its read by a second at most; each of the two calls takes no longer than the service's time limit of a
 * second.
 */
const maxRaceMs = 3_000

/** A send as the ledger has it; `names` are sorted, with spaces between. */
interface Intent {
  domain: string
  names: string
  startedAt: number
}

/** A send as the registrar has received it. */
interface Send {
  domain: string
  names: string
  at: number
  /** The zone is as it was sent since. */
  isDone: boolean
}

/** A time in which a process of the service stood still. */
export interface Suspension {
  from: number
  until: number
}

interface ToolWrite {
  name: string
  at: number
}

/** A registrar in trouble: it fails, answers outdated zones, carries writes out late, and another tool writes to it. */
export class CampaignRegistrar {
  readonly #sandbox: Sandbox
  readonly #tool: ToolWrite[] = []
  readonly #sends: Send[] = []
  /** When the zone of the other tool was shown as it was. */
  readonly #shown: number[] = []
  readonly #seen = new WeakSet<object>()
  /** Answers to getHosts since the last outdated one, by domain. */
  readonly #currentAnswers = new Map<string, number>()
  /** When the zone of a domain was last replaced. */
  readonly #sentAt = new Map<string, number>()
  #callCount = 0
  #lateWrites = 0
  #races = 0

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox
  }

  get callCount() {
    return this.#callCount
  }
  get toolWrites() {
    return this.#tool.length
  }
  get lateWrites() {
    return this.#lateWrites
  }
  /** Records of the other tool that were erased by a send that could not have seen them. */
  get races() {
    return this.#races
  }

  async trouble(isOver: () => boolean): Promise<void> {
    this.#sandbox.fault({
      kind: 'refused_row',
      address: '192.0.2.66',
      command: setHosts,
      times: 0,
      domain: 'plain.com',
    })
    for (let n = 0; !isOver(); n++) {
      await pause(150)
      this.collect()
      this.#dropOutdated()
      const faults: FaultInput[] = [
        ...this.#outdated(),
        { kind: 'lost', command: setHosts },
        { kind: 'reset', command: setHosts },
        { kind: 'html', command: getHosts },
        { kind: 'status', status: 405 },
        { kind: 'cut', command: getHosts },
      ]
      // Faults that pile up while the circuit is open would keep it open for ever.
      const pending = this.#sandbox.faults.length
      if (n % 3 === 0 && pending < maxPending) this.#sandbox.fault(pick(faults))
      if (n % 7 === 0) await this.#writeAsTool()
      if (n % 20 === 10 && !this.#sandbox.faults.some(({ kind }) => kind === 'late'))
        this.#sandbox.fault({ kind: 'late', command: setHosts, domain: 'late.com' })
      if (n % 20 === 19) await this.#runLate()
    }
  }

  /** Ends all trouble. Sends that are still late are carried out now. */
  async calm(): Promise<void> {
    this.#sandbox.clearFaults()
    await this.#sandbox.runLate()
    this.collect()
  }

  /** Sends that are in no ledger. */
  unknownSends(intents: Intent[]): string[] {
    const known = new Set(intents.map(({ domain, names }) => `${domain} ${names}`))
    return this.#sends
      .filter(({ domain, names }) => !known.has(`${domain} ${names}`))
      .map(({ domain, at }) => `${domain}: a send at ${at} is in no ledger`)
  }

  /** Sends that reached the registrar when a later one of their domain had begun: two processes wrote it at once. */
  overtakenSends(intents: Intent[], suspensions: Suspension[]): string[] {
    return this.#sends.flatMap((send) => {
      const { domain, at } = send
      const own = intentOf(send, intents)
      if (!own || isHeldUp(send, own, suspensions)) return []
      const later = intents
        .slice(intents.indexOf(own) + 1)
        .filter((each) => each.domain === domain && each.startedAt < at)
      return later.length === 0 ? [] : [`${domain}: a send at ${at}, ${later.length} later ones begun`]
    })
  }

  /** Records of the other tool that are gone, though the erasing process must have seen them. */
  erased(intents: Intent[], suspensions: Suspension[]): string[] {
    const live = new Set(this.#sandbox.zone('tool.com').hosts.map(({ name }) => name))
    return this.#tool.flatMap(({ name, at }) => {
      if (live.has(name)) return []
      const eraser = this.#sends.find(
        (send) => send.domain === 'tool.com' && send.isDone && send.at >= at && !send.names.split(' ').includes(name),
      )
      const isRace =
        eraser !== undefined &&
        (eraser.at - at <= maxRaceMs ||
          // A machine that stands still delays what is under way.
          !this.#shown.some((shown) => shown >= at && shown <= eraser.at) ||
          isHeldUp(eraser, intentOf(eraser, intents), suspensions))
      if (isRace) this.#races++
      return isRace ? [] : [`tool.com ${name}: erased ${eraser ? eraser.at - at : '?'} ms after it was made`]
    })
  }

  // After two current answers, since the service believes four outdated ones in a row.
  #outdated(): FaultInput[] {
    if (this.#sandbox.faults.some(({ kind }) => kind === 'outdated')) return []
    const candidates = [...this.#currentAnswers].filter(([domain, count]) => count >= 2 && this.#wasSentLately(domain))
    return candidates.map(([domain]) => ({ kind: 'outdated', command: getHosts, domain, after: 1 }))
  }

  // No getHosts has met them in time.
  #dropOutdated() {
    const isDue = ({ kind, domain = '' }: Fault) => kind === 'outdated' && !this.#wasSentLately(domain)
    if (!this.#sandbox.faults.some(isDue)) return
    const others = this.#sandbox.faults.filter((fault) => !isDue(fault))
    this.#sandbox.clearFaults()
    this.#sandbox.fault(...others)
  }

  #wasSentLately(domain: string): boolean {
    return Date.now() - (this.#sentAt.get(domain) ?? 0) < maxOutdatedMs
  }

  /** Takes over what the sandbox has recorded: it remembers a limited number of calls. */
  collect() {
    for (const call of this.#sandbox.calls) {
      if (call.outcome === 'under way' || this.#seen.has(call)) continue
      this.#seen.add(call)
      this.#callCount++
      this.#countCurrent(call)
      if (call.command !== setHosts.toLowerCase() || call.outcome === 'rate') continue
      const names = Object.entries(call.params)
        .filter(([key]) => /^hostname\d+$/i.test(key))
        .map(([, name]) => name.toLowerCase())
        .sort()
        .join(' ')
      const isDone = call.outcome === 'ok' && !['reset', 'late', 'status'].includes(call.fault ?? '')
      this.#sends.push({ domain: call.domain ?? '', names, at: call.at, isDone })
      if (isDone) this.#sentAt.set(call.domain ?? '', call.at)
    }
  }

  #countCurrent({ command, domain = '', fault, outcome, at }: Call) {
    if (command !== getHosts.toLowerCase() || outcome !== 'ok') return
    if (fault && fault !== 'outdated') return
    if (!fault && domain === 'tool.com') this.#shown.push(at)
    const count = this.#currentAnswers.get(domain) ?? 0
    this.#currentAnswers.set(domain, fault === 'outdated' ? 0 : count + 1)
  }

  async #writeAsTool() {
    const { hosts } = this.#sandbox.zone('tool.com')
    if (hosts.length > 120) return
    const name = `tool-${this.#tool.length}`
    await this.#sandbox.setZone('tool.com', {
      hosts: [...hosts, { name, type: 'A', address: '192.0.2.50' }],
    })
    this.#tool.push({ name, at: Date.now() })
  }

  async #runLate() {
    this.#lateWrites++
    await this.#sandbox.runLate()
  }
}

/** The intent of a send. The clock of the ledger may be ahead of the registrar's by a rounded millisecond. */
const intentOf = ({ domain, names, at }: Send, intents: Intent[]) =>
  intents.findLast((each) => each.domain === domain && each.names === names && each.startedAt <= at + 1)

/** Whether the process that sent this may have been suspended between its last look at the clock and the sending. */
const isHeldUp = ({ at }: Send, own: Intent | undefined, suspensions: Suspension[]) =>
  own !== undefined && suspensions.some(({ from, until }) => own.startedAt <= from && until <= at)
