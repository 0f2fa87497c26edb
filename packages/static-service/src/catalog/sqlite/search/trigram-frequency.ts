import type { Database } from '../database.ts'
import { trigramsOf } from './trigrams.ts'

/** Estimates how common each trigram is, from a random sample of 1,000 files. */
export class TrigramFrequency {
  readonly #db: Database
  readonly #counts = new Map<string, number>()
  #newestId = 0
  #sampled = 0

  constructor(db: Database) {
    this.#db = db
  }

  /** Estimated number of files when the sample was taken. */
  get population(): number {
    return this.#newestId
  }

  /** Estimated share of the files that contain this trigram, 0 to 1. */
  shareOf(trigram: string): number {
    return this.#sampled === 0 ? 0 : (this.#counts.get(trigram) ?? 0) / this.#sampled
  }

  /** Takes a new sample when the store has grown by half. */
  refresh(): void {
    const newestId =
      this.#db.prepare<[], number | null>('select max(id) from files').pluck().get() ?? 0
    if (newestId <= this.#newestId * 1.5) return
    const next = this.#db
      .prepare<[number], string>(
        'select coalesce(folded, upper(path)) from files where id >= ? order by id limit 1',
      )
      .pluck()
    this.#counts.clear()
    for (let count = 0; count < sampleSize; count += 1) {
      const folded = next.get(Math.ceil(Math.random() * newestId)) ?? ''
      for (const trigram of trigramsOf(folded)) {
        this.#counts.set(trigram, (this.#counts.get(trigram) ?? 0) + 1)
      }
    }
    this.#newestId = newestId
    this.#sampled = sampleSize
  }
}

const sampleSize = 1000
