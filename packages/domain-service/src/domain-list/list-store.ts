import type { DomainEntry } from '../registrar/responses.ts'

/** One reading of the whole list, page by page. */
export interface ListPass {
  /** Undefined while it could not be stored: it is kept in memory only. */
  id: number | undefined
  startedAt: number
  completedAt: number | undefined
  /** How many domains there are, as the latest page says. */
  total: number | undefined
  /** Domains came or went between two pages, so one may be missing. */
  hasChanged: boolean
  pages: DomainEntry[][]
}

export interface StoredPasses {
  complete: ListPass | undefined
  partial: ListPass | undefined
}

/** The latest complete list of one account, and the progress of the next. */
export interface DomainListStore {
  load(): Promise<StoredPasses>
  begin(startedAt: number): Promise<number>
  addPage(pass: number, page: number, entries: DomainEntry[], total: number): Promise<void>
  /** Completes a pass; earlier ones are dropped. */
  complete(pass: number, completedAt: number): Promise<void>
}
