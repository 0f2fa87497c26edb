import {
  type NamedRrset,
  ownerOf,
  parseRow,
  type RecordInput,
  type RecordKey,
  type RecordPatch,
  type Row,
  validateName,
} from '../record.ts'
import type { Zone } from '../zone.ts'

/** A change of a zone as JSON data, so that the ledger can store it and another process can apply it. */
export type ZoneEdit = ReplaceEdit | BatchEdit | SetRrsetEdit | RestoreEdit | RevertEdit | EnsureEdit

/** Exactly these records. Of a zone file: `lines` of the records, and the path of the email type, `/line/12`, for faults. */
export interface ReplaceEdit {
  kind: 'replace'
  records: RecordInput[]
  emailType?: string | undefined
  lines?: number[]
  emailTypePath?: string
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

/** All records of one name and type; `removeRrset` has no values. The value of an MX record is `10 mx1.example.net`. */
export interface SetRrsetEdit extends NamedRrset {
  kind: 'setRrset' | 'removeRrset'
  ttl?: number | undefined
  /** The TTL of new values where those that are there keep theirs. Not `ttl`, which older replicas would give to all. */
  newTtl?: number | undefined
  /** Seconds: the TTL of a new RRset; an existing one keeps its own, whatever its values. */
  defaultTtl?: number
  values?: string[]
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

/**
 * The RRsets that an edit names, whether or not it changes them: those of its records, and of the live records whose
 * ids it gives. An invalid name is left out, since it names none.
 */
export function namedRrsets(zone: Zone, edit: ZoneEdit): NamedRrset[] {
  const { domain } = zone
  const { remove = [], update = [], add = [], records = [], present = [], absent = [] } = edit as EditLists
  const live = new Map(zone.rows.map((row) => parseRow(row).record).map((record) => [record.id, record]))
  const old = [...remove, ...update.map(({ id }) => id)].flatMap((id) => live.get(id) ?? [])
  const renamed = update.flatMap(({ id, patch }) => {
    const type = live.get(id)?.type
    return type && patch.name !== undefined ? { name: patch.name, type } : []
  })
  const own = 'type' in edit ? [edit] : []
  const named = [...add, ...records, ...present, ...absent, ...renamed, ...own]
  const wanted = named.map(({ name, type }) => ({ name: ownerOf(name) || '@', type: type.toUpperCase() }))
  return [...old, ...wanted.filter(({ name }) => validateName(name, domain) === undefined)]
}

/** The fields of these kinds of edits: each list is of one kind. */
export type EditLists = Partial<Omit<BatchEdit, 'kind'> & Omit<ReplaceEdit, 'kind'> & Omit<EnsureEdit, 'kind'>>
