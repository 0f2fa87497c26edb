import { createHash } from 'node:crypto'
import type { Sql, SqlTransaction } from '@domains-and-files/persistence'
import { type FilesQuery, filesAt, readLastChange, requireKept } from '../history/past-files.ts'
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

/** The files below a directory as a change left them, or as they are now. @throws {HttpError} as `requireKept`. */
export const openTree = (
  database: Pick<Sql, 'snapshot'>,
  { directory, at }: TreeQueryAt,
): Promise<OpenedTree> =>
  database.snapshot(async (transaction) => {
    if (at !== undefined) await requireKept(transaction, { directory, change: at })
    const change = at ?? (await readLastChange(transaction))
    const tag = new TreeTag()
    const first: TreeFile[] = []
    const query = { directory, after: '', change: at }
    for await (const page of readTreePages((next) => readTreePage(transaction, next), query)) {
      tag.add(page)
      if (first.length < heldFiles) first.push(...page)
    }
    return { ...tag.state, first, change }
  })

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
