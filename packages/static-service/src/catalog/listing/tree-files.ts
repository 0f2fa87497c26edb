import { createHash } from 'node:crypto'
import { name, type Sql, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { below } from '../changes/load-files.ts'

/** A file of a tree: its name relative to the tree's directory. */
export interface TreeFile {
  name: string
  digest: string
  size: number
  /** ISO 8601. */
  updatedAt: string
}

/** What identifies a tree. */
export interface TreeState {
  files: number
  /** Strong entity tag over all names and digests: the same for every form of the tree. */
  etag: string
}

/** A tree as it was at one moment. */
export interface OpenedTree extends TreeState {
  /** The first 20,000 files; `readTreePage` has the rest. */
  first: TreeFile[]
}

export interface TreePageQuery {
  /** The root is empty. */
  directory: string
  /** Files after this name; empty: from the first. */
  after: string
}

/** Files below a directory, in the order of the bytes of their names, at most `pageFiles`. */
export async function readTreePage(
  transaction: Pick<SqlTransaction, 'all'>,
  { directory, after }: TreePageQuery,
): Promise<TreeFile[]> {
  const start = directory === '' ? '' : `${directory}/`
  const rows = await transaction.all<Omit<TreeFile, 'name'> & { path: string }>(
    sql`select path, digest, size, updated_at "updatedAt" from ${name('files')}
      where ${below(directory)} and path > ${start + after} order by path limit ${pageFiles}`,
  )
  return rows.map(({ path, ...file }) => ({ ...file, name: path.slice(start.length) }))
}

/** All pages of a tree, from after a name. */
export async function* readTreePages(
  readPage: (query: TreePageQuery) => Promise<TreeFile[]>,
  { directory, after }: TreePageQuery,
): AsyncGenerator<TreeFile[]> {
  let page = await readPage({ directory, after })
  while (page.length > 0) {
    yield page
    const last = page.length === pageFiles ? page.at(-1) : undefined
    page = last ? await readPage({ directory, after: last.name }) : []
  }
}

const pageFiles = 5000
const heldFiles = 20_000

export const openTree = (database: Pick<Sql, 'snapshot'>, directory: string): Promise<OpenedTree> =>
  database.snapshot(async (transaction) => {
    const tag = new TreeTag()
    const first: TreeFile[] = []
    for await (const page of pagesOf(transaction, directory)) {
      tag.add(page)
      if (first.length < heldFiles) first.push(...page)
    }
    return { ...tag.state, first }
  })

/** The tree as a transaction sees it. */
export async function readTreeState(
  transaction: Pick<SqlTransaction, 'all'>,
  directory: string,
): Promise<TreeState> {
  const tag = new TreeTag()
  for await (const page of pagesOf(transaction, directory)) tag.add(page)
  return tag.state
}

const pagesOf = (transaction: Pick<SqlTransaction, 'all'>, directory: string) =>
  readTreePages((query) => readTreePage(transaction, query), { directory, after: '' })

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
