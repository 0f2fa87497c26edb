export interface TreeQuery {
  /** The directory to start at; the root is empty. */
  prefix: string
  /** Levels to open. */
  depth: number
}

export interface FileNode {
  name: string
  path: string
  type: 'file'
  size: number
  content_type: string
}

export interface DirectoryNode {
  name: string
  path: string
  type: 'directory'
  file_count: number
  total_size: number
  /** Null: not opened, because the response is full or deep enough. */
  children: (DirectoryNode | FileNode)[] | null
  /** There are more children than a response can hold. */
  truncated?: true
}

export interface DirectoryRow {
  name: string
  path: string
  /** Number of files and directories directly in it. */
  children: number
  file_count: number
  total_size: number
}

/** Maximum nodes of a response. */
export const maxNodes = 10_000

export const toNode = ({ name, path, file_count, total_size }: DirectoryRow): DirectoryNode => ({
  name,
  path,
  type: 'directory',
  file_count,
  total_size,
  children: null,
})
