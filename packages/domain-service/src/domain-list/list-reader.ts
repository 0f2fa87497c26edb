import { type Clock, delay, type Logger } from '@domains-and-files/http'
import type { Priority } from '../budget/call-windows.ts'
import type { Leases } from '../ledger/replicas/leases.ts'
import type { RegistrarClient } from '../registrar/client.ts'
import type { DomainListStore, ListPass, StoredPasses } from './list-store.ts'

/** The registrar's largest page. */
export const pageSize = 100

export interface ReaderOptions {
  registrar: RegistrarClient
  store: DomainListStore
  /** Where several processes have the same list: one at a time reads it. */
  leases?: Leases | undefined
  /** Milliseconds from one reading to the next; longer for a list whose reading takes long. */
  ttlMs: number
  clock: Clock
  log: Logger
}

/** Poll interval for the progress of another process. */
const followMs = 1_000

/** Reads the account's list page by page. An interrupted pass continues where it stopped, also after a restart. */
export class ListReader {
  readonly #options: ReaderOptions
  #pass: ListPass | undefined
  /** Resolves when the next page has been read, unless it is the last one. */
  nextPage = Promise.withResolvers<void>()
  /** Whether the rest of the pass is read at once: a client waits, and the readers' share has enough calls for it. */
  isImmediate = false
  /** The last complete list. */
  #lastId: number

  constructor(options: ReaderOptions, { complete, partial }: StoredPasses) {
    this.#options = options
    this.#pass = partial
    this.#lastId = complete?.id ?? 0
  }

  /** The pass under way; `pages` and `total` are undefined before its first page. */
  get progress() {
    const { pages = [], total, startedAt } = this.#pass ?? {}
    return {
      startedAt,
      entries: pages.flat(),
      pagesRead: pages.length,
      total,
      pages: total === undefined ? undefined : Math.max(1, Math.ceil(total / pageSize)),
    }
  }

  /** Milliseconds until the rest of the pass under way can be read. */
  remainingMs(priority: Priority): number {
    const { pagesRead, pages = pagesRead + 1 } = this.progress
    return this.#options.registrar.quota.waitMs(priority, Math.max(1, pages - pagesRead))
  }

  /**
   * Reads the rest of the list. `isAwaited`: a client waits for it, so its calls have the priority of reads as long as all
   * of it can be read at once; a longer list leaves calls to other readers.
   * @throws the registrar's HttpError; the pages read so far stay.
   */
  async read(options: { isAwaited: boolean }): Promise<ListPass> {
    const { leases, store, clock } = this.#options
    if (!leases) return this.#readRest(options)
    for (;;) {
      const lease = await leases.tryAcquire(`list of ${store.account}`)
      try {
        const read = await this.#adopt()
        if (read) return read
        if (lease) return await this.#readRest(options)
      } finally {
        if (lease) await leases.release(lease)
      }
      await delay(clock, followMs)
    }
  }

  /** Continues with what other processes have read. @returns a list that is newer than the last one. */
  async #adopt(): Promise<ListPass | undefined> {
    const { complete, partial } = await this.#options.store.load()
    if (partial && partial.pages.length > (this.#pass?.pages.length ?? 0)) this.#announcePage()
    // A pass that could not be stored goes on in memory.
    if (partial || this.#pass?.id !== undefined) this.#pass = partial
    if (complete?.id === undefined || complete.id <= this.#lastId) return undefined
    this.#lastId = complete.id
    return complete
  }

  async #readRest({ isAwaited }: { isAwaited: boolean }): Promise<ListPass> {
    const { registrar, clock } = this.#options
    const pass = this.#pass ?? { startedAt: clock.now(), hasChanged: false, pages: [] }
    while (!pass.completedAt) {
      const page = pass.pages.length + 1
      this.isImmediate = isAwaited && this.remainingMs('read') === 0
      const { domains, total } = await registrar.listDomains(
        { listType: 'ALL', searchTerm: undefined, sortBy: 'NAME', page, pageSize },
        this.isImmediate ? 'read' : 'background',
      )
      const known = new Set(pass.pages.flat().map(({ name }) => name))
      const added = domains.filter(({ name }) => !known.has(name))
      pass.pages.push(domains)
      const isShort = added.length < Math.min(pageSize, total - (page - 1) * pageSize)
      pass.hasChanged ||= isShort || (pass.total ?? total) !== total
      pass.total = total
      if (added.length === 0 || page * pageSize >= total) pass.completedAt = clock.now()
      this.#pass = pass
      await this.#store(pass)
      if (!pass.completedAt) this.#announcePage()
    }
    this.#pass = undefined
    this.#lastId = pass.id ?? this.#lastId
    return pass
  }

  #announcePage() {
    this.nextPage.resolve()
    this.nextPage = Promise.withResolvers()
  }

  // After a failure the rest of the pass stays in memory: a later page must not follow a missing one.
  async #store(pass: ListPass) {
    const { store, log } = this.#options
    if (pass.id === undefined && pass.pages.length > 1) return
    try {
      pass.id = await store.addPage(pass)
    } catch (error) {
      pass.id = undefined
      log.error({ err: error }, 'domain list not stored; kept in memory')
    }
  }
}
