import type { Transaction } from '@domains-and-files/persistence'
import { trigramsOf } from './trigrams.ts'

interface SampledFile {
  folded: string
  category: string
}

/** Estimates shares of the files from a random sample of their paths. */
export class PathSample {
  #files: SampledFile[] = []
  #trigrams = new Map<number, number>()
  #population = 0

  /** Takes a new sample when the number of files has changed by half. */
  async refresh(transaction: Transaction, population: number): Promise<void> {
    const isRecent = population <= this.#population * 1.5 && population >= this.#population / 2
    if (isRecent && this.#files.length > 0) return
    const percent = Math.min(100, (100 * sampleSize) / Math.max(population, 1))
    this.#files = await transaction.query<SampledFile & Record<string, unknown>>(
      `select folded, category from static_service.files tablesample system (${percent}) limit ${2 * sampleSize}`,
    )
    this.#population = population
    this.#trigrams = new Map()
    for (const { folded } of this.#files) {
      for (const trigram of trigramsOf(folded)) {
        this.#trigrams.set(trigram, (this.#trigrams.get(trigram) ?? 0) + 1)
      }
    }
  }

  /** Estimated share of the files whose paths contain a text, and that have a category if one is given; 0 to 1. */
  shareOf(folded: string, category: string | undefined): number {
    const isMatch = (file: SampledFile) =>
      file.folded.includes(folded) && (category === undefined || file.category === category)
    return this.#share(this.#files.filter(isMatch).length)
  }

  /** Those trigrams of a text that narrow a search most, the rarest first. */
  rarest(folded: string): { trigrams: number[]; share: number } {
    const counted = trigramsOf(folded)
      .map((trigram) => ({ trigram, share: this.#share(this.#trigrams.get(trigram) ?? 0) }))
      .sort((one, other) => one.share - other.share)
    // Those of very many files exclude few and take long to read.
    const useful = counted.filter(({ share }, at) => at === 0 || share < commonShare)
    return {
      trigrams: useful.slice(0, maxTrigrams).map(({ trigram }) => trigram),
      share: counted[0]?.share ?? 0,
    }
  }

  #share(count: number) {
    return this.#files.length === 0 ? 0 : count / this.#files.length
  }
}

const sampleSize = 3000

const commonShare = 0.1

// More of them cost more look-ups than the rows that they exclude.
const maxTrigrams = 4
