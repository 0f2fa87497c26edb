import { type Dialect, name, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import { foldedPath } from '../migrations.ts'
import { among, insertInto } from '../records.ts'

/**
 * Search indexes over paths: by runs of three bytes, and shorter ones for terms of one or two bytes. A run of UTF-8
 * bytes occurs only where its characters do, so one index serves every alphabet. A run is written as letters from
 * U+0100 on, one for each byte.
 */
export interface SearchIndex {
  /** Adds files that the transaction inserted. Absent with `remove` where the database keeps the index up to date. */
  add?(transaction: SqlTransaction, files: IndexedFile[]): Promise<void>

  /** Removes files that the transaction ended. */
  remove?(transaction: SqlTransaction, files: { id: number }[]): Promise<void>

  /** The files that contain all these runs, the rarest run first, and are of the category. */
  candidates(runs: string[], category: string | undefined): { from: Statement; condition: Statement }

  /** Some files at random. */
  sample(transaction: SqlTransaction, population: number): Promise<SampledFile[]>

  /** Tells the planner how to read in later statements of the transaction: along an order, or by the index. */
  plan?(transaction: SqlTransaction, by: 'order' | 'index'): Promise<void>
}

export interface SampledFile {
  folded: string
  category: string
}

export type IndexedFile = SampledFile & { id: number }

/** The distinct runs that stand for a text in the index: of three bytes, or itself if it is shorter. */
export function runsOf(folded: string): string[] {
  const letters = lettersOf(folded)
  const length = Math.min(letters.length, runLength)
  const runs = new Set<string>()
  for (let at = 0; at + length <= letters.length; at += 1) runs.add(letters.slice(at, at + length))
  return [...runs]
}

const runLength = 3

function lettersOf(text: string): string {
  let letters = ''
  for (const byte of Buffer.from(text)) letters += String.fromCharCode(0x100 + byte)
  return letters
}

const storeBodies = insertInto('trigrams', { rowid: 'bigint', body: 'text' })

// SQLite's full-text index. Its tokenizer keeps every letter beyond ASCII as it is; ASCII is left for the categories.
// Its prefixes serve runs of one and two bytes.
const fts5: SearchIndex = {
  async add(transaction, files) {
    const rows = files.map(({ id, folded, category }) => ({ rowid: id, body: `${bodyOf(folded)} ${category}` }))
    await storeBodies(transaction, rows)
  },

  async remove(transaction, files) {
    const ids = files.map(({ id }) => id)
    await transaction.run(sql`delete from trigrams where rowid ${among(ids)}`)
  },

  candidates(runs, category) {
    const terms = runs.map((run) => (run.length < runLength ? `"${run}" *` : `"${run}"`))
    const match = (category ? [...terms, category] : terms).join(' AND ')
    return {
      from: sql`trigrams cross join files on files.id = trigrams.rowid`,
      condition: sql`trigrams match ${match}`,
    }
  },

  sample(transaction) {
    return transaction.all(sql`
      with recursive draws (left_over, at) as (
        select ${sampleSize}, abs(random() % (select max(id) from files))
        union all select left_over - 1, abs(random() % (select max(id) from files)) from draws where left_over > 1
      )
      select ${foldedPath} folded, category from draws
        join files on files.id = (select id from files where id > at order by id limit 1)`)
  },
}

// Runs with what is shorter at the end. Repeated ones take no room.
function bodyOf(folded: string): string {
  const letters = lettersOf(folded)
  let body = ''
  for (let at = 0; at < letters.length; at += 1) body += `${letters.slice(at, at + runLength)} `
  return body
}

// PostgreSQL's index of arrays of numbers, which it keeps up to date itself: see ADR 0017.
const arrays: SearchIndex = {
  candidates(runs, category) {
    const numbers = [...runs.map(numberOf), ...(category ? [categoryNumber(category)] : [])]
    return {
      from: sql`${name('files')}`,
      condition: sql`${name('trigrams')}(folded, category) @> ${numbers}::integer[]`,
    }
  },

  sample(transaction, population) {
    const percent = Math.min(100, (100 * sampleSize) / Math.max(population, 1))
    return transaction.all(
      sql`select folded, category from ${name('files')} tablesample system (${percent}) limit ${2 * sampleSize}`,
    )
  },

  async plan(transaction, by) {
    // Parallel workers take longer to start than the rest takes. The planner cannot know how early a page is full.
    const isAllowed = by === 'index' ? 'on' : 'off'
    await transaction.run(
      sql([
        `set local enable_sort = ${isAllowed}; set local enable_bitmapscan = ${isAllowed};
       set local enable_seqscan = ${isAllowed}; set local max_parallel_workers_per_gather = 0`,
      ]),
    )
  },
}

export const searchIndexes: Record<Dialect, SearchIndex> = { sqlite: fts5, postgres: arrays }

const sampleSize = 3000

/** The number of a category: the first two letters of categories are unique. */
const categoryNumber = (category: string) => -((category.charCodeAt(0) << 8) + category.charCodeAt(1))

// As the function `trigrams` does: runs of one, two and three bytes have ranges of their own.
function numberOf(run: string): number {
  const [first = 0, second = 0, third = 0] = Array.from(run, (letter) => letter.charCodeAt(0) - 0x100)
  if (run.length === 1) return first
  if (run.length === 2) return 256 + (first << 8) + second
  return 65_792 + (first << 16) + (second << 8) + third
}

/** Estimates shares of the files from a random sample of their paths. */
export class PathSample {
  #files: SampledFile[] = []
  #runs = new Map<string, number>()
  #population = 0

  /** Takes a new sample when the number of files has changed by half. */
  async refresh(transaction: SqlTransaction, population: number): Promise<void> {
    const isRecent = population <= this.#population * 1.5 && population >= this.#population / 2
    if (isRecent && this.#files.length > 0) return
    this.#files = await searchIndexes[transaction.dialect].sample(transaction, population)
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

  /** The most selective runs of a text, the rarest first. */
  rarest(folded: string): string[] {
    const counted = runsOf(folded)
      .map((run) => ({ run, share: this.#share(this.#runs.get(run) ?? 0) }))
      .sort((one, other) => one.share - other.share)
    // Common runs exclude few files, and reading them takes long.
    const useful = counted.filter(({ share }, at) => at === 0 || share < commonShare)
    return useful.slice(0, maxRuns).map(({ run }) => run)
  }

  #share(count: number) {
    return this.#files.length === 0 ? 0 : count / this.#files.length
  }
}

const commonShare = 0.1

// Further runs cost more look-ups than they save rows.
const maxRuns = 4
