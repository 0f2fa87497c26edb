import { name, type Sql, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import { among } from '../records.ts'
import { searchIndexes } from './search-index.ts'

/** Maximum nodes of a response. */
const maxNodes = 10_000

/** A file or directory of the response: the columns of its row. */
interface Node {
  path: string
  /** Of a directory; null: not opened. */
  children?: Node[] | null
  truncated?: true
}

interface Directory {
  parent: string
  /** Number of files and directories directly in it. */
  size: number
  node: Node
}

/**
 * A directory (the root is empty) and as many levels below it, as JSON of the response: objects would take longer between
 * threads. Breadth first; a directory that does not fit whole stays unopened, except the first. Undefined when there is
 * no such directory. SQLite reads files from their index alone: each row would be another page of the database.
 */
export const readTree = (
  database: Sql,
  { prefix, depth }: { prefix: string; depth: number },
): Promise<Uint8Array | undefined> =>
  database.snapshot(async (transaction) => {
    const [root] = await readDirectories(transaction, sql`path = ${prefix}`)
    if (!root) return undefined
    // PostgreSQL would sort a large directory to find the first files of it.
    await searchIndexes[transaction.dialect].plan?.(transaction, 'order')
    let left = maxNodes - 1
    for (let [level, at] = [[root], 0]; at < depth && level.length > 0; at += 1) {
      const limit = left
      const opened = level.filter((directory) => {
        if (directory.size > left && directory !== root) return false
        if (directory.size > left) directory.node.truncated = true
        left -= Math.min(directory.size, left)
        return true
      })
      level = await open(transaction, opened, limit)
    }
    return Buffer.from(JSON.stringify({ tree: root.node }))
  })

async function readDirectories(transaction: SqlTransaction, condition: Statement): Promise<Directory[]> {
  const rows = await transaction.all<Node & Omit<Directory, 'node'>>(
    sql`select parent, children size, name, path, 'directory' type, file_count, total_size
      from ${name('directories')} where ${condition}`,
  )
  return rows.map(({ parent, size, ...node }) => ({ parent, size, node: { ...node, children: null } }))
}

// By their sizes, all children of these directories fit, or there is only one directory.
async function open(transaction: SqlTransaction, opened: Directory[], limit: number): Promise<Directory[]> {
  const nodes = new Map(opened.map(({ node }) => [node.path, node]))
  for (const { node } of opened) node.children = []
  const isIn = among([...nodes.keys()])
  const directories = await readDirectories(transaction, sql`parent ${isIn} order by parent, name limit ${limit}`)
  const files = await transaction.all<Node & { directory: string }>(
    sql`select directory, name, ltrim(directory || '/' || name, '/') path, 'file' type, size, content_type from ${name('files')}
      where directory ${isIn} order by directory, name limit ${limit - directories.length}`,
  )
  for (const { parent, node } of directories) nodes.get(parent)?.children?.push(node)
  for (const { directory, ...node } of files) nodes.get(directory)?.children?.push(node)
  return directories
}
