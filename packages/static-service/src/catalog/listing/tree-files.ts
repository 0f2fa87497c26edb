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
  /** The first 20,000 files; `readTreePages` has the rest. */
  first: TreeFile[]
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

/**
 * The files below a directory as a change left them, or as they are now, and the last change that they show.
 * @throws {HttpError} as `requireKept`.
 */
export const openTree = (
  database: Pick<Sql, 'snapshot'>,
  { directory, at }: { directory: string; at?: number | undefined },
): Promise<OpenedTree & { change: number }> =>
  database.snapshot(async (transaction) => {
    if (at !== undefined) await requireKept(transaction, { directory, change: at })
    const tree = await readOpenedTree(transaction, directory, at)
    return { ...tree, change: at ?? (await readLastChange(transaction)) }
  })

/** The tree as a transaction sees it. */
export async function readOpenedTree(
  transaction: Pick<SqlTransaction, 'all'>,
  directory: string,
  change?: number,
): Promise<OpenedTree> {
  const hash = createHash('sha256')
  const first: TreeFile[] = []
  let files = 0
  const query = { directory, after: '', change }
  for await (const page of readTreePages((next) => readTreePage(transaction, next), query)) {
    for (const { name, digest } of page) hash.update(`${name}\0${digest}\n`)
    files += page.length
    if (first.length < heldFiles) first.push(...page)
  }
  return { files, first, etag: `"${hash.digest('hex').slice(0, 32)}"` }
}
