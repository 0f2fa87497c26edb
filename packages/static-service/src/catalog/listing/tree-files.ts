import { createHash } from 'node:crypto'
import { name, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { type FilesQuery, filesAt, isGone } from '../history/past-files.ts'
import type { TreeState } from '../list-query.ts'

/** A file of a tree: its name relative to the tree's directory. */
export interface TreeFile {
  name: string
  digest: string
  size: number
  /** ISO 8601. */
  updatedAt: string
}

/** A tree as it was at one moment. */
export interface OpenedTree extends TreeState {
  /** The change that produced this state. */
  change: number
  /** Whether some of its files are no longer kept. */
  isGone: boolean
  /** The first 20,000 files; `readTreePage` has the rest. */
  first: TreeFile[]
}

export interface TreeQueryAt {
  /** The root is empty. */
  directory: string
  /** As this change left it; undefined: as it is now. */
  at?: number | undefined
}

/** `after`: files after this name; empty: from the first. */
export type TreePageQuery = Omit<FilesQuery, 'limit'>

/** Files below a directory, in the order of the bytes of their names, at most `pageFiles`. */
export async function readTreePage(
  transaction: Pick<SqlTransaction, 'all'>,
  { directory, after, change }: TreePageQuery,
): Promise<TreeFile[]> {
  const start = directory === '' ? '' : `${directory}/`
  const page = { directory, change, after: start + after, limit: pageFiles }
  const rows = await filesAt(transaction, page)
  return rows.map(({ path, digest, size, updatedAt }) => {
    return { name: path.slice(start.length), digest, size, updatedAt }
  })
}

/** All pages of a tree, from after a name. */
export async function* readTreePages(
  readPage: (query: TreePageQuery) => Promise<TreeFile[]>,
  query: TreePageQuery,
): AsyncGenerator<TreeFile[]> {
  let page = await readPage(query)
  while (page.length > 0) {
    yield page
    const last = page.length === pageFiles ? page.at(-1) : undefined
    page = last ? await readPage({ ...query, after: last.name }) : []
  }
}

const pageFiles = 5000
const heldFiles = 20_000

/** The files below a directory as a change left them, or as they are now; undefined: there is no such change yet. */
export const openTree = (
  database: Pick<Sql, 'snapshot'>,
  { directory, at }: TreeQueryAt,
): Promise<OpenedTree | undefined> =>
  database.snapshot(async (transaction) => {
    const change = await readLastChange(transaction)
    if (at !== undefined && at > change) return undefined
    const tag = new TreeTag()
    const first: TreeFile[] = []
    const query = { directory, after: '', change: at }
    for await (const page of readTreePages((next) => readTreePage(transaction, next), query)) {
      tag.add(page)
      if (first.length < heldFiles) first.push(...page)
    }
    const isPartly = at !== undefined && (await isGone(transaction, { directory, change: at }))
    return { ...tag.state, first, change: at ?? change, isGone: isPartly }
  })

/** The number of the last change. */
export async function readLastChange(transaction: Pick<SqlTransaction, 'get'>): Promise<number> {
  const found = await transaction.get<{ change: number }>(
    sql`select last_change change from ${name('catalog')}`,
  )
  return found?.change ?? 0
}

/** The tree as a transaction sees it. */
export async function readTreeState(
  transaction: Pick<SqlTransaction, 'all'>,
  directory: string,
): Promise<TreeState> {
  const tag = new TreeTag()
  const query = { directory, after: '' }
  for await (const page of readTreePages((next) => readTreePage(transaction, next), query))
    tag.add(page)
  return tag.state
}

/** The state of a tree, from its files in their order. */
export class TreeTag {
  readonly #hash = createHash('sha256')
  #files = 0

  add(files: Pick<TreeFile, 'name' | 'digest'>[]): void {
    for (const file of files) this.#hash.update(`${file.name}\0${file.digest}\n`)
    this.#files += files.length
  }

  get state(): TreeState {
    return { files: this.#files, etag: `"${this.#hash.copy().digest('hex').slice(0, 32)}"` }
  }
}
