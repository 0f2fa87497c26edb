import type { SqlTransaction } from '@domains-and-files/persistence'
import { runsOf, type SampledFile, searchIndexOf } from './search-index.ts'

/** Estimates shares of the files from a random sample of their paths. */
export class PathSample {
  #files: SampledFile[] = []
  #runs = new Map<string, number>()
  #population = 0

  /** Takes a new sample when the number of files has changed by half. */
  async refresh(transaction: SqlTransaction, population: number): Promise<void> {
    const isRecent = population <= this.#population * 1.5 && population >= this.#population / 2
    if (isRecent && this.#files.length > 0) return
    this.#files = await searchIndexOf(transaction.dialect).sample(transaction, population)
    this.#population = population
    this.#runs = new Map()
    for (const { folded } of this.#files) {
      for (const run of runsOf(folded)) this.#runs.set(run, (this.#runs.get(run) ?? 0) + 1)
    }
  }

  /** Estimated share of the files whose paths contain a text, and that have a category if one is given; 0 to 1. */
  shareOf(folded: string, category: string | undefined): number {
    const isMatch = (file: SampledFile) =>
      file.folded.includes(folded) && (category === undefined || file.category === category)
    return this.#share(this.#files.filter(isMatch).length)
  }

  /** Those runs of a text that narrow a search most, the rarest first. */
  rarest(folded: string): string[] {
    const counted = runsOf(folded)
      .map((run) => ({ run, share: this.#share(this.#runs.get(run) ?? 0) }))
      .sort((one, other) => one.share - other.share)
    // Those of very many files exclude few and take long to read.
    const useful = counted.filter(({ share }, at) => at === 0 || share < commonShare)
    return useful.slice(0, maxRuns).map(({ run }) => run)
  }

  #share(count: number) {
    return this.#files.length === 0 ? 0 : count / this.#files.length
  }
}

const commonShare = 0.1

// More of them cost more look-ups than the rows that they exclude.
const maxRuns = 4
