import type { Row } from '../record.ts'
import type { RecordInput, RecordKey, RecordPatch } from '../record-validation.ts'

/** A change of a zone as JSON data, so that the ledger can store it and another process can apply it. */
export type ZoneEdit =
  | ReplaceEdit
  | BatchEdit
  | SetRrsetEdit
  | { kind: 'removeRrset'; name: string; type: string }
  | RestoreEdit
  | RevertEdit
  | EnsureEdit

/** Exactly these records. `lines` are their line numbers in a zone file: faults then name `/line/12`. */
export interface ReplaceEdit {
  kind: 'replace'
  records: RecordInput[]
  emailType?: string | undefined
  lines?: number[]
}

/** All of it or nothing. Faults have pointers such as `/update/2/ttl`; `/ttl` of a single record. */
export interface BatchEdit {
  kind: 'batch'
  /** One record in a request of its own. */
  isSingle?: boolean
  remove?: string[] | undefined
  update?: { id: string; patch: RecordPatch }[] | undefined
  add?: RecordInput[] | undefined
  emailType?: string | undefined
}

/** All records of one name and type. The value of an MX record is `10 mx1.example.net`. */
export interface SetRrsetEdit {
  kind: 'setRrset'
  name: string
  type: string
  ttl?: number | undefined
  values: string[]
  emailType?: string | undefined
}

/** A former zone, rows and email type as they were. */
export interface RestoreEdit {
  kind: 'restore'
  rows: Row[]
  emailType?: string | undefined
}

/** Undoes one change: `added` and `removed` are the rows that the change added and removed. */
export interface RevertEdit {
  kind: 'revert'
  added: Row[]
  removed: Row[]
  emailTypeBefore?: string | undefined
  emailTypeAfter?: string | undefined
}

/**
 * Idempotent: `absent` records are removed where they are found, `present` ones added where they are missing.
 * A record in both lists stays. A TTL or MX preference is changed only if given.
 */
export interface EnsureEdit {
  kind: 'ensure'
  present: RecordInput[]
  absent: RecordKey[]
  /** Seconds: of added records without a TTL of their own. */
  defaultTtl?: number
  emailType?: string | undefined
}
