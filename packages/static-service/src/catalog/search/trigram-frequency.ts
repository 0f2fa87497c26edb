import type { Database } from '../database.ts'
import { trigramsOf } from './trigrams.ts'

/** How common each gram is, judged by a thousand files taken at random. */
export class TrigramFrequency {
  readonly #db: Database
  readonly #counts = new Map<string, number>()
  #newest = 0
  #taken = 0

  constructor(db: Database) {
    this.#db = db
  }

  /** About which share of the files holds this gram, 0 to 1. */
  shareOf(gram: string): number {
    return this.#taken === 0 ? 0 : (this.#counts.get(gram) ?? 0) / this.#taken
  }

  /** Taken anew when the store has half as many files again as it had. */
  refresh(): void {
    const newest =
      this.#db.prepare<[], number | null>('select max(id) from files').pluck().get() ?? 0
    if (newest <= this.#newest * 1.5) return
    const next = this.#db
      .prepare<[number], string>(
        'select coalesce(folded, upper(path)) from files where id >= ? order by id limit 1',
      )
      .pluck()
    this.#counts.clear()
    for (let count = 0; count < size; count += 1) {
      const folded = next.get(Math.ceil(Math.random() * newest)) ?? ''
      for (const gram of trigramsOf(folded))
        this.#counts.set(gram, (this.#counts.get(gram) ?? 0) + 1)
    }
    this.#newest = newest
    this.#taken = size
  }
}

const size = 1000
