import type { ServiceProcess } from './service-process.ts'

/** What is known of a record: an acknowledged write, or one without a certain answer. */
type Belief = 'present' | 'absent' | 'unknown'

const maxOwn = 8

/** A client that adds and removes records of its own, and remembers what it was answered. */
export class CampaignWriter {
  readonly domain: string
  readonly answers: Record<string, number> = {}
  readonly #service: ServiceProcess
  readonly #prefix: string
  readonly #beliefs = new Map<string, Belief>()
  readonly #everPresent = new Set<string>()
  readonly #ids = new Map<string, string>()
  #count = 0

  constructor(service: ServiceProcess, domain: string, prefix: string) {
    this.#service = service
    this.domain = domain
    this.#prefix = prefix
  }

  /** Acknowledged writes. */
  get done(): number {
    return (this.answers[200] ?? 0) + (this.answers[201] ?? 0)
  }

  /** @returns whether the write was answered, and not refused for a while. */
  async write(): Promise<boolean> {
    await this.#service.whenReady()
    const before = this.#inVain()
    const own = [...this.#beliefs].filter(([, belief]) => belief === 'present').map(([name]) => name)
    const [oldest] = own
    if (oldest !== undefined && (own.length >= maxOwn || Math.random() < 0.3)) await this.#remove(oldest)
    else await this.#add()
    if (this.#inVain() === before) return true
    await new Promise((resolve) => setTimeout(resolve, 100))
    return false
  }

  /** What the zone contradicts. */
  violations(live: Set<string>, removed: Set<string>): string[] {
    return [...this.#beliefs].flatMap(([name, belief]) => {
      const isLive = live.has(name)
      if (belief === 'present' && !isLive) return [`${this.domain} ${name}: acknowledged, but lost`]
      if (belief === 'absent' && isLive) return [`${this.domain} ${name}: not done by its answer, but live`]
      const isGone = this.#everPresent.has(name) && !isLive
      if (isGone && !removed.has(`${this.domain} ${name}`))
        return [`${this.domain} ${name}: removed, but in no history`]
      return []
    })
  }

  async #add() {
    const name = `${this.#prefix}-${this.#count++}`
    // One in fifty is refused by the registrar where that fault is on.
    const address = this.#count % 50 === 0 ? '192.0.2.66' : '192.0.2.9'
    const { status, code, body } = await this.#service.call('POST', `/api/domains/${this.domain}/dns/hosts/A`, {
      name,
      address,
    })
    this.#note(status, code)
    if (code === 'too_many_records') await this.#cleanUp()
    const belief = beliefOf(status, code, 'present')
    this.#beliefs.set(name, belief)
    if (belief !== 'present') return
    this.#everPresent.add(name)
    this.#ids.set(name, String((body as { id?: string }).id))
  }

  async #remove(name: string) {
    const id = this.#ids.get(name) ?? ''
    const { status, code } = await this.#service.call('DELETE', `/api/domains/${this.domain}/dns/hosts/${id}`)
    this.#note(status, code)
    // 404 contradicts what was acknowledged: the belief stays, and the examination tells.
    if (status !== 404) this.#beliefs.set(name, beliefOf(status, code, 'absent'))
  }

  /** Removes records that an unanswered write left, so that the zone does not fill up. */
  async #cleanUp() {
    const { body } = await this.#service.call('GET', `/api/domains/${this.domain}/dns/hosts`)
    const { hosts = [] } = body as { hosts?: { id: string; name: string }[] }
    for (const { id, name } of hosts.filter((host) => this.#beliefs.get(host.name) === 'unknown')) {
      this.#ids.set(name, id)
      await this.#remove(name)
    }
  }

  /** Writes without an answer, and with 503. */
  #inVain(): number {
    const counts = Object.entries(this.answers).filter(([key]) => /^(?:0$|503)/.test(key))
    return counts.reduce((sum, [, count]) => sum + count, 0)
  }

  #note(status: number, code: string | undefined) {
    const key = code ? `${status} ${code}` : String(status)
    this.answers[key] = (this.answers[key] ?? 0) + 1
  }
}

/** No answer, `write_not_confirmed` and `outcome_unknown` leave it open; any other failure promises that nothing was done. */
function beliefOf(status: number, code: string | undefined, wanted: 'present' | 'absent'): Belief {
  if (status >= 200 && status < 300) return wanted
  if (status === 0 || code === 'write_not_confirmed' || code === 'outcome_unknown') return 'unknown'
  return wanted === 'present' ? 'absent' : 'present'
}
