import type { RowChange } from './tracked-rows.ts'

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
  prefix: string | null
  /** The version that was recorded with it. */
  version: string | null
}

/** A change of the catalog: what one request did to files, in one transaction or in slices. */
export interface ChangeEntry extends ChangeCause {
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
    ...entry,
    ...{ id, at },
    bytes: entry.added + entry.replaced > 0 ? bytes.stored : bytes.removed,
    paths: files.slice(0, maxPaths).map(({ key }) => key),
    isForgotten: false,
  }
}

/** The cause of a change on named files. */
export const causeOf = (
  actor: Actor,
  action: ChangeAction,
  directory: string | null = null,
): ChangeCause => ({
  ...actor,
  action,
  prefix: directory === null ? null : `${directory}/`,
  version: null,
})
