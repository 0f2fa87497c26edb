import { name, type Sql, type SqlTransaction, type Statement, sql } from '@domains-and-files/persistence'
import { among, jsonObject } from '../records.ts'

/** Maximum nodes of a response. */
const maxNodes = 10_000

interface DirectoryRow {
  path: string
  /** Number of files and directories directly in it. */
  children: number
  /** Its node as JSON, without children. */
  node: string
}

/** A directory of the response. The database writes the JSON of nodes: thousands of rows would block the event loop. */
interface Branch {
  row: DirectoryRow
  /** JSON of the files directly in it. */
  files: string
  /** Undefined: not opened. */
  directories: Branch[] | undefined
  isTruncated: boolean
}

/**
 * A directory (the root is empty) and as many levels below it, as JSON of the response. Breadth first; a directory that
 * does not fit whole stays unopened, except the first. Undefined when there is no such directory.
 */
export const readTree = (
  database: Sql,
  { prefix, depth }: { prefix: string; depth: number },
): Promise<Uint8Array | undefined> =>
  database.snapshot(async (transaction) => {
    const row = await transaction.get<DirectoryRow>(
      sql`select ${directoryColumns} from ${name('directories')} where path = ${prefix}`,
    )
    if (!row) return undefined
    const root = toBranch(row)
    await openLevels(transaction, root, depth)
    return Buffer.from(`{"tree":${write(root)}}`)
  })

// In the order of a node's fields.
const directoryColumns: Statement = sql`path, children, ${jsonObject({
  name: 'name',
  path: 'path',
  type: "'directory'",
  file_count: 'file_count',
  total_size: 'total_size',
})} node`

const fileNode = jsonObject({ name: 'name', path: 'path', type: "'file'", size: 'size', content_type: 'content_type' })

const toBranch = (row: DirectoryRow): Branch => ({ row, directories: undefined, files: '', isTruncated: false })

async function openLevels(transaction: SqlTransaction, root: Branch, depth: number) {
  let left = maxNodes - 1
  let level = [root]
  for (let at = 0; at < depth && level.length > 0; at += 1) {
    const opened: Branch[] = []
    const limit = left
    for (const branch of level) {
      const { children } = branch.row
      if (children > left && branch !== root) continue
      branch.isTruncated = children > left
      left -= Math.min(children, left)
      opened.push(branch)
    }
    await open(transaction, opened, limit)
    level = opened.flatMap(({ directories = [] }) => directories)
  }
}

// By the counts, all children of these directories fit, or there is only one directory.
async function open(transaction: SqlTransaction, branches: Branch[], limit: number) {
  const paths = branches.filter(({ row }) => row.children > 0).map(({ row }) => row.path)
  for (const branch of branches) branch.directories = []
  if (paths.length === 0) return
  const byPath = new Map(branches.map((branch) => [branch.row.path, branch]))
  const directories = await transaction.all<DirectoryRow & { parent: string }>(
    sql`select parent, ${directoryColumns} from ${name('directories')}
      where parent ${among(paths)} order by name limit ${limit}`,
  )
  for (const { parent, ...row } of directories) byPath.get(parent)?.directories?.push(toBranch(row))
  // One look-up per directory: its index has the files by name.
  const files = await transaction.all<{ path: string; files: string | null }>(sql`
    select path, (select string_agg(node, ',') from (
      select ${fileNode} node from ${name('files')} where directory = branch.path
      order by name limit ${limit - directories.length}) file) files
    from ${name('directories')} branch where path ${among(paths)}`)
  for (const { path, files: json } of files) {
    const branch = byPath.get(path)
    if (branch && json) branch.files = json
  }
}

function write({ row, directories, files, isTruncated }: Branch): string {
  const children = directories && [...directories.map(write), ...(files ? [files] : [])].join(',')
  const list = children === undefined ? 'null' : `[${children}]`
  return `${row.node.slice(0, -1)},"children":${list}${isTruncated ? ',"truncated":true' : ''}}`
}
