/** The request that changes files. */
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
