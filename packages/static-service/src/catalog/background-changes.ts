import { databaseProblem, HttpError } from '@domains-and-files/http'
import { BackgroundTask, name, now, OutcomeUnknownError, type Sql, sql } from '@domains-and-files/persistence'
import type { CatalogWrites } from './changes/change-groups.ts'
import type { HistoryRules, Removed } from './changes/group.ts'

interface Dependencies {
  database: Sql
  history: HistoryRules | undefined
  writes: CatalogWrites
}

/**
 * Background work: carries out changes in slices, including those that a crashed process left, and prunes expired
 * history. Requests may wait for their own slices.
 */
export class BackgroundChanges {
  readonly #dependencies: Dependencies
  /** Changes that this process carries out in slices. */
  readonly #inSlices = new Map<number, Promise<Removed>>()
  readonly #finishing = new BackgroundTask({ run: () => this.#finishAbandoned(), onError: retried })
  readonly #pruning = new BackgroundTask({ run: () => this.#pruneExpired(), onError: retried })
  /** Milliseconds without progress after which this process takes over a change. */
  #untouchedMs = abandonedMs
  #isClosing = false

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  /** Looks for abandoned changes and expired history now, and regularly. `isExclusive`: only this process makes changes. */
  start(isExclusive: boolean): void {
    if (isExclusive) this.#untouchedMs = 0
    void this.#finishing.start(abandonedMs)
    void this.#pruning.start(pruneMs)
  }

  /** Carries out a recorded change; other changes may run between its slices. */
  carryOut(id: number): Promise<Removed> {
    const running = this.#inSlices.getOrInsertComputed(id, () => this.#runSlices(id))
    return running.finally(() => this.#inSlices.delete(id))
  }

  /** Prunes expired history in batches; other changes may run between them. */
  prune(): Promise<void> {
    return this.#pruning.run()
  }

  /** No blob is freed from now on; changes in slices continue after the next opening. */
  async close(): Promise<void> {
    this.#isClosing = true
    await Promise.all([this.#finishing.close(), this.#pruning.close()])
    await Promise.allSettled(this.#inSlices.values())
  }

  async #pruneExpired() {
    const { database, history, writes } = this.#dependencies
    const past = await database.get(sql`select 1 from ${name('past_files')} limit 1`)
    const entry = await database.get(sql`select 1 from ${name('changes')} limit 1`)
    if (!past && !(entry && history?.entryDays)) return
    for (let isLast = false; !isLast && !this.#isClosing; ) isLast = (await writes.prune({})).isLast
  }

  async #finishAbandoned() {
    const changes = await this.#dependencies.database.all<{ id: number }>(
      sql`select id from ${name('unfinished_changes')}
        where touched_at <= ${now} - ${this.#untouchedMs} order by id`,
    )
    for (const { id } of changes) await this.carryOut(id)
  }

  async #runSlices(id: number): Promise<Removed> {
    const { writes } = this.#dependencies
    const sum = { files: 0, bytes: 0, bytesFreed: 0 }
    for (;;) {
      const outcome = await writes.continue({ id }).catch(async (error) => {
        const isRefused = error instanceof HttpError && error.status < 500
        if (isRefused) await writes.abandon({ id })
        throw databaseProblem(error)?.code === 'unavailable' ? new OutcomeUnknownError(error) : error
      })
      if (!outcome) throw new OutcomeUnknownError('another process has ended the change')
      sum.files += outcome.files
      sum.bytes += outcome.bytes
      sum.bytesFreed += outcome.bytesFreed
      if (outcome.isLast) return sum
      if (this.#isClosing) throw new OutcomeUnknownError('the service stops')
    }
  }
}

// After this time without progress, the process that ran a change is taken as dead.
const abandonedMs = 60_000
const pruneMs = 600_000

const retried = () => undefined // The next run tries again.
