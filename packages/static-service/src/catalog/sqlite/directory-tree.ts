import {
  type DirectoryRow as CountedDirectory,
  type DirectoryNode,
  type FileNode,
  maxNodes,
  type TreeQuery,
  toNode,
} from '../tree.ts'
import type { Database } from './database.ts'

interface DirectoryRow extends CountedDirectory {
  id: number
}

/**
 * The directory at `prefix` with everything below it, as JSON of the response: the worker serializes it, because 10,000
 * nodes would block the event loop. Breadth first; a directory that does not fit whole stays unopened, except the first.
 * Undefined when there is no such directory.
 */
export function writeTree(db: Database, query: TreeQuery): Uint8Array | undefined {
  const tree = db.transaction(() => grow(db, query))()
  return tree && Buffer.from(JSON.stringify({ tree }))
}

function grow(db: Database, { prefix, depth }: TreeQuery): DirectoryNode | undefined {
  const found = db
    .prepare<[string], DirectoryRow>(`select ${columns} from directories where path = ?`)
    .get(prefix)
  if (!found) return undefined
  const directoriesIn = db.prepare<[number, number], DirectoryRow>(
    `select ${columns} from directories where parent = ? order by name limit ?`,
  )
  const filesIn = db.prepare<[number, number], FileNode>(
    `select name, path, 'file' type, size, content_type from files
     where directory = ? order by name limit ?`,
  )

  const root = toNode(found)
  let left = maxNodes - 1
  let level = [{ row: found, node: root }]
  for (let at = 0; at < depth && level.length > 0; at += 1) {
    const below: typeof level = []
    for (const { row, node } of level) {
      const isFirst = node === root
      if (row.children > left && !isFirst) continue
      const directories = directoriesIn.all(row.id, left).map((each) => ({
        row: each,
        node: toNode(each),
      }))
      const files = filesIn.all(row.id, left - directories.length)
      node.children = [...directories.map((each) => each.node), ...files]
      if (row.children > left) node.truncated = true
      left -= node.children.length
      below.push(...directories)
    }
    level = below
  }
  return root
}

const columns = 'id, name, path, children, file_count, total_size'
