import type { Postgres, Transaction } from '@domains-and-files/persistence'
import { maxNodes, type TreeQuery } from '../tree.ts'

interface DirectoryRow {
  path: string
  /** Number of files and directories directly in it. */
  children: number
  /** Its node as JSON, without children. */
  node: string
}

/** A directory of the response. PostgreSQL writes the JSON of nodes: thousands of rows would block the event loop. */
interface Branch {
  row: DirectoryRow
  /** JSON of the files directly in it. */
  files: string
  /** Undefined: not opened. */
  directories: Branch[] | undefined
  isTruncated: boolean
}

/**
 * The directory at the prefix with everything below it, as JSON of the response. Breadth first; a directory that does not
 * fit whole stays unopened, except the first. Undefined when there is no such directory.
 */
export function readTree(
  postgres: Postgres,
  { prefix, depth }: TreeQuery,
): Promise<Uint8Array | undefined> {
  return postgres.snapshot(async (transaction) => {
    const [row] = await transaction.query<DirectoryRow & Record<string, unknown>>(
      `select ${columns} from static_service.directories ${node} where directories.path = $1`,
      [prefix],
    )
    if (!row) return undefined
    const root = toBranch(row)
    await openLevels(transaction, root, depth)
    return Buffer.from(`{"tree":${write(root)}}`)
  })
}

const columns = 'directories.path, children, row_to_json(node)::text node'

// In the order of a node's fields.
const node = `cross join lateral (
  select name, path, 'directory' "type", file_count, total_size) node`

const toBranch = (row: DirectoryRow): Branch => ({
  row,
  directories: undefined,
  files: '',
  isTruncated: false,
})

async function openLevels(transaction: Transaction, root: Branch, depth: number) {
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

// The counts say that all children of these directories fit, or there is one only.
async function open(transaction: Transaction, branches: Branch[], limit: number) {
  const paths = branches.filter(({ row }) => row.children > 0).map(({ row }) => row.path)
  for (const branch of branches) branch.directories = []
  if (paths.length === 0) return
  const byPath = new Map(branches.map((branch) => [branch.row.path, branch]))
  const directories = await transaction.query<DirectoryRow & { parent: string }>(
    `select ${columns}, parent from static_service.directories ${node}
     where parent = any($1) order by directories.name limit $2`,
    [paths, limit],
  )
  for (const { parent, ...row } of directories) byPath.get(parent)?.directories?.push(toBranch(row))
  const files = await transaction.query<{ directory: string; files: string }>(filesQuery, [
    paths,
    limit - directories.length,
  ])
  for (const { directory, files: json } of files) {
    const branch = byPath.get(directory)
    if (branch) branch.files = json
  }
}

const filesQuery = `
  select directory, string_agg(row_to_json(node)::text, ',' order by node.name collate "C") files
  from (
    select directory, name, path, size, content_type from static_service.files
    where directory = any($1) order by name limit $2
  ) file
    cross join lateral (select file.name, file.path, 'file' "type", file.size, file.content_type) node
  group by directory`

function write({ row, directories, files, isTruncated }: Branch): string {
  const children = directories && [...directories.map(write), ...(files ? [files] : [])].join(',')
  const list = children === undefined ? 'null' : `[${children}]`
  return `${row.node.slice(0, -1)},"children":${list}${isTruncated ? ',"truncated":true' : ''}}`
}
