import { appendEvents, type NewEvent, ofTypes } from '@domains-and-files/events'
import { list, name, type SqlTransaction, sql } from '@domains-and-files/persistence'
import type { Link } from '../../sharing/links.ts'

// What changes leave behind beside the rows of files: dates, entries in the list of changes, and events.

/** The request that changes files, as its change entry names it. */
export interface Actor {
  /** Username. */
  by: string
  /** Name of its API token; null: a session. */
  token: string | null
  requestId: string
}

/** The actor of changes without a request. */
export const nobody: Actor = { by: '', token: null, requestId: '' }

export const changeActions = ['upload', 'delete', 'move', 'deploy', 'restore', 'revert'] as const

export type ChangeAction = (typeof changeActions)[number]

/** Why a change was made. */
export interface ChangeCause extends Actor {
  action: ChangeAction
  /** The directory that the request named, with a trailing slash; `/` is the root. */
  prefix?: string | null
  /** The version that was recorded with it. */
  version?: string | null
}

/** A change of the catalog: what one request did to files, in one transaction or in slices. */
export interface ChangeEntry extends Required<ChangeCause> {
  /** Increases with each change; may have gaps. */
  id: number
  /** ISO 8601; never earlier than the previous change. */
  at: string
  added: number
  replaced: number
  removed: number
  /** Bytes of the stored files; if it stored none, of the removed ones. */
  bytes: number
  /** The first ten paths. */
  paths: string[]
  /** Whether any of its files has been forgotten since. */
  isForgotten: boolean
}

/** The effect of a command on a row. */
export interface RowChange<Row> {
  key: string
  before: Row | undefined
  after: Row | undefined
}

const maxPaths = 10

/** The entry of a change that did this to files. */
export function entryOf(
  cause: ChangeCause,
  { id, at, files }: { id: number; at: string; files: RowChange<{ size: number }>[] },
): ChangeEntry {
  const entry = { added: 0, replaced: 0, removed: 0 }
  const bytes = { stored: 0, removed: 0 }
  for (const { before, after } of files) {
    if (before || after) entry[after ? (before ? 'replaced' : 'added') : 'removed'] += 1
    bytes.stored += after?.size ?? 0
    bytes.removed += after ? 0 : (before?.size ?? 0)
  }
  return {
    ...cause,
    prefix: cause.prefix ?? null,
    version: cause.version ?? null,
    ...entry,
    id,
    at,
    bytes: entry.added + entry.replaced > 0 ? bytes.stored : bytes.removed,
    paths: files.slice(0, maxPaths).map(({ key }) => key),
    isForgotten: false,
  }
}

/** The time of a transaction, and the latest date that the catalog knows, both as ISO 8601. */
export interface ChangeDates {
  readonly clock: string
  latest: string
}

/**
 * The date of a file that is stored or ends now, as ISO 8601; `before`: the date of the file that it replaces, or its
 * own. At each path dates never go backwards, even if the clock does, and no two rows share a second that a client may
 * have seen. Otherwise a client that compares whole seconds (RFC 9110, 8.8.2) would take a new file for the one it has.
 */
export function dateFor(dates: ChangeDates, before?: string): string {
  const isBehind = dates.clock < dates.latest
  const now = isBehind ? dates.latest : dates.clock
  const date = isBehind && before && secondOf(before) >= secondOf(now) ? nextSecond(before) : now
  if (date > dates.latest) dates.latest = date
  return date
}

const secondOf = (date: string) => date.slice(0, 19)

const nextSecond = (date: string) => new Date((Math.floor(Date.parse(date) / 1000) + 1) * 1000).toISOString()

/** Data of an event `files.changed`: the entry of the change, and its directories. */
export interface FilesChanged {
  entry: ChangeEntry
  /** With a trailing slash; the root is empty. At most 100; more are replaced by their ancestors. */
  directories: string[]
  /** Files below these directories were changed, too. */
  isDeep: boolean
}

const maxDirectories = 100

/** The event of a change in these directories, named as in `FilesChanged`, or below them. */
export function fileEventOf(entry: ChangeEntry, directories: Iterable<string>, isDeep = false): NewEvent {
  const named = [...new Set(directories)]
  const { by, requestId } = entry
  const data: FilesChanged =
    named.length > maxDirectories
      ? { entry, directories: directoriesAbove(named), isDeep: true }
      : { entry, directories: named, isDeep }
  return { type: 'files.changed', by, requestId, data }
}

/** The deepest level at which at most 100 directories cover all. */
function directoriesAbove(parents: string[]): string[] {
  let found = ['']
  for (let depth = 1; ; depth += 1) {
    const cut = new Set(parents.map((each) => each.split(/(?<=\/)/, depth).join('')))
    if (cut.size > maxDirectories) return found
    found = [...cut]
  }
}

/** Records an event per used-up link, once: skips known ones, as a process may crash before it marks them as recorded. */
export async function recordUsedUp({ transaction }: { transaction: SqlTransaction }, links: Link[]): Promise<void> {
  const type = 'link.used_up'
  const texts = list(links.map((link) => JSON.stringify(link)))
  const known = await transaction.all<{ data: string }>(
    sql`select data from ${name('events')} where ${ofTypes([type])} and data in (${texts})`,
  )
  const ids = new Set(known.map(({ data }) => (JSON.parse(data) as Link).id)) // As stored below.
  const added = links.filter(({ id }) => !ids.has(id))
  await appendEvents(
    transaction,
    added.map((data) => ({ type, data })),
  )
}
