import { domainToUnicode } from 'node:url'
import { delay, type Timer } from '@domains-and-files/http'
import { isOfType, type ListQuery, sortDomains } from '@domains-and-files/registrar-sandbox/protocol'
import { type Domain, readDomain, toAscii } from '../dns/domain-name.ts'
import { registrarBusy } from '../errors.ts'
import type { DomainEntry } from '../registrar/responses.ts'
import { ListReader, pageSize, type ReaderOptions } from './list-reader.ts'
import type { ListPass, StoredPasses } from './list-store.ts'

export interface ListPage {
  domains: DomainEntry[]
  total: number
  /** Milliseconds since the reading began. */
  age: number
  /** Outdated, because the registrar fails. */
  stale: boolean
}

/** Whether a caller may see a domain. */
export type Visibility = (name: string) => boolean

// A request waits this long for a reading that can be completed.
const maxWaitMs = 10_000
const retryMs = 30_000
// A list that takes minutes to read is being read for at most a fifth of the time.
const restFactor = 4

/**
 * The account's domains, cached: read page by page in the background, searched, sorted and paged locally. The first
 * request starts the first reading; from then on no request waits for the registrar, also after a restart.
 */
export class DomainList {
  readonly #options: ReaderOptions
  readonly #reader: ListReader
  #snapshot: ListSnapshot | undefined
  #reading: Promise<void> | undefined
  #timer: Timer | undefined
  #hasFailed = false
  #isClosed = false

  /** Starts with the stored list. */
  static async open(options: ReaderOptions): Promise<DomainList> {
    return new DomainList(options, await options.store.load())
  }

  private constructor(options: ReaderOptions, { complete, partial }: StoredPasses) {
    this.#options = options
    if (complete) this.#snapshot = toSnapshot(complete)
    this.#reader = new ListReader(options, { complete, partial })
    if (complete || partial) this.#schedule(partial ? 0 : this.#dueInMs(complete))
  }

  /**
   * One page of the domains that match and are visible. Without `isVisible` the caller sees all domains: then the page may
   * come from the registrar directly while the first reading is under way.
   * @throws 503 `registrar_busy` with Retry-After while the list is incomplete, or the registrar's error.
   */
  async select(
    query: ListQuery,
    caller: { isVisible: Visibility | undefined; wantsFresh: boolean },
  ): Promise<ListPage> {
    if (caller.wantsFresh && this.#snapshot) await this.#refresh(this.#snapshot)
    else if (!this.#snapshot) await this.#awaitFirst(caller.isVisible === undefined)
    if (this.#snapshot) return this.#pageOf(this.#snapshot, query, caller.isVisible)
    if (caller.isVisible) throw this.#incomplete()
    return this.#directPage(query)
  }

  /**
   * The longest name of the account that a host name equals or ends in, among those visible.
   * @throws 503 `registrar_busy` while the list is incomplete and the part read so far has no such name.
   */
  async findZoneOf(hostName: string, isVisible: Visibility): Promise<Domain | undefined> {
    if (!this.#snapshot) await this.#awaitFirst(true)
    const { domains } = this.#snapshot ?? toSnapshot({ pages: [this.#reader.progress.entries], startedAt: 0 })
    let rest = toAscii(hostName.replace(/\.$/, '')) ?? ''
    for (; rest.includes('.'); rest = rest.slice(rest.indexOf('.') + 1)) {
      const domain = domains.has(rest) && isVisible(rest) ? readDomain(rest) : undefined
      if (typeof domain === 'object') return domain
    }
    if (!this.#snapshot) throw this.#incomplete()
    return undefined
  }

  /** The state of the list, as the API has it; makes no call. */
  state() {
    const { pagesRead, pages = null } = this.#reader.progress
    const { domains, startedAt } = this.#snapshot ?? {}
    return {
      domains: domains?.size ?? null,
      read_at: startedAt === undefined ? null : new Date(startedAt).toISOString(),
      is_reading: this.#reading !== undefined,
      pages_read: pagesRead,
      pages,
    }
  }

  /** How many domains expire within `days` from now, or have expired; 0 before the first reading. */
  countExpiring(days: number): number {
    const until = this.#options.clock.now() + days * 86_400_000
    const soon = ({ expires_on: date }: DomainEntry) => date !== null && Date.parse(date) <= until
    return [...(this.#snapshot?.domains.values() ?? [])].filter(soon).length
  }

  /** The domains on the registrar's DNS, as far as the list was read. */
  get managed(): string[] {
    const domains = this.#snapshot?.domains.values() ?? []
    return [...domains].filter((each) => each.uses_registrar_dns !== false).map(({ name }) => name)
  }

  close() {
    this.#isClosed = true
    this.#timer?.cancel()
  }

  #pageOf(snapshot: ListSnapshot, query: ListQuery, isVisible: Visibility | undefined): ListPage {
    const now = this.#options.clock.now()
    const isMatching = (domain: DomainEntry) =>
      matchesTerm(domain, query.searchTerm) &&
      isOfType(domain, query.listType, now) &&
      (isVisible === undefined || isVisible(domain.name))
    const sort = () => sortDomains([...snapshot.domains.values()], query.sortBy)
    const matching = snapshot.sorted.getOrInsertComputed(query.sortBy, sort).filter(isMatching)
    const start = (query.page - 1) * query.pageSize
    const age = Math.max(0, now - snapshot.startedAt)
    return {
      domains: matching.slice(start, start + query.pageSize),
      total: matching.length,
      age,
      stale: this.#hasFailed && age > this.#options.ttlMs,
    }
  }

  // From the part read so far if that has the page, otherwise from the registrar, whose pages have at least ten entries.
  async #directPage(query: ListQuery): Promise<ListPage> {
    const { clock, registrar } = this.#options
    const skipped = (query.page - 1) * query.pageSize
    const { entries, total, startedAt = clock.now() } = this.#reader.progress
    const isReadingOrder = query.sortBy === 'NAME' && query.listType === 'ALL' && query.searchTerm === undefined
    if (isReadingOrder && skipped + query.pageSize <= entries.length) {
      const domains = entries.slice(skipped, skipped + query.pageSize)
      return { domains, total: total ?? entries.length, age: clock.now() - startedAt, stale: false }
    }
    const size = query.pageSize * Math.ceil(10 / query.pageSize)
    const page = Math.floor(skipped / size) + 1
    const answer = await registrar.listDomains({ ...query, page, pageSize: size })
    const start = skipped % size
    const domains = answer.domains.slice(start, start + query.pageSize)
    return { domains, total: answer.total, age: 0, stale: false }
  }

  // Waits for the end of the first reading if that is near, or for its first page if that is enough to go on.
  async #awaitFirst(firstPageIsEnough: boolean) {
    const { promise: nextPage } = this.#reader.nextPage
    const reading = this.#read(true)
    reading.catch(() => undefined) // This request may go on before the reading fails.
    const timeout = delay(this.#options.clock, maxWaitMs)
    if (this.#reader.progress.pagesRead === 0) await Promise.race([reading, nextPage, timeout])
    if (this.#snapshot || this.#reader.progress.pagesRead === 0) return
    const isNear = this.#reader.isImmediate || (!firstPageIsEnough && this.#remainingMs() <= maxWaitMs)
    if (isNear) await Promise.race([reading, timeout])
  }

  // A list of one page costs one call, so the caller waits for a fresh one; a longer list is read in the background.
  async #refresh(snapshot: ListSnapshot) {
    const { clock, registrar } = this.#options
    if (Math.abs(clock.now() - snapshot.startedAt) < registrar.freshAgeMs) return
    const reading = this.#read(true)
    reading.catch(() => undefined) // `#readOnce` records it; a long list is answered from the snapshot.
    if (snapshot.domains.size <= pageSize) await Promise.race([reading, delay(clock, maxWaitMs)])
  }

  #read(isAwaited: boolean): Promise<void> {
    this.#reading ??= this.#readOnce(isAwaited).finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #readOnce(isAwaited: boolean) {
    const { store, clock, log } = this.#options
    this.#timer?.cancel()
    try {
      const pass = await this.#reader.read({ isAwaited })
      this.#snapshot = toSnapshot(pass)
      this.#hasFailed = false
      this.#schedule(pass.hasChanged ? retryMs : this.#dueInMs(pass))
    } catch (error) {
      this.#hasFailed = true
      this.#schedule(retryMs)
      throw error
    } finally {
      // Also while the registrar fails: domains expire as days pass.
      if (this.#snapshot && !this.#isClosed)
        await store.recordEvents(clock.now()).catch((err) => log.warn({ err }, 'events of domains not recorded'))
    }
  }

  #dueInMs(pass: ListPass | undefined): number {
    if (!pass?.completedAt) return 0
    const restMs = Math.max(this.#options.ttlMs, restFactor * (pass.completedAt - pass.startedAt))
    // At most the whole rest, where the clock was ahead.
    return Math.max(0, Math.min(restMs, pass.completedAt + restMs - this.#options.clock.now()))
  }

  #schedule(inMs: number) {
    if (this.#isClosed) return
    this.#timer?.cancel()
    this.#timer = this.#options.clock.setTimer(() => {
      this.#read(false).catch((error: unknown) => {
        if (!this.#isClosed) this.#options.log.warn({ err: error }, 'domain list not read')
      })
    }, inMs)
  }

  // Adds some time for the calls themselves to the wait for their slots.
  #remainingMs(): number {
    return this.#reader.remainingMs('background') + 1_000
  }

  #incomplete() {
    const seconds = Math.ceil(this.#remainingMs() / 1000)
    return registrarBusy(seconds, "The account's list of domains is read for the first time")
  }
}

/** Whether the name, in A-labels or in Unicode, contains the term in any case. */
export function matchesTerm({ name }: { name: string }, term: string | undefined): boolean {
  if (term === undefined) return true
  const wanted = term.toLowerCase()
  return name.includes(wanted) || (name.includes('xn--') && domainToUnicode(name).includes(wanted))
}

/** The account's domains as one complete reading found them, by name. */
interface ListSnapshot {
  domains: ReadonlyMap<string, DomainEntry>
  sorted: Map<ListQuery['sortBy'], DomainEntry[]>
  startedAt: number
}

// A domain added between two pages moves another one to a second page.
const toSnapshot = ({ pages, startedAt }: Pick<ListPass, 'pages' | 'startedAt'>): ListSnapshot => ({
  domains: new Map(pages.flat().map((domain) => [domain.name, domain])),
  sorted: new Map(),
  startedAt,
})
