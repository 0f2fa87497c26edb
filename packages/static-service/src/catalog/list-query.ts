import type { FileRow } from '../files/file-record.ts'
import type { Category } from '../files/media-type.ts'

export const sorts = ['path', '-path', 'updated_at', '-updated_at', 'size', '-size'] as const

/** Matches of a search are counted up to this number. */
export const maxHits = 10_000

export interface ListQuery {
  category?: Category | undefined
  search?: string | undefined
  /** Only files below this directory; empty or undefined: the root. */
  prefix?: string | undefined
  /** False: only files directly in the directory. */
  recursive?: boolean | undefined
  sort: (typeof sorts)[number]
  page: number
  /** The page after this file in the order of the list, instead of `page`. */
  after?: SortedFile | undefined
  pageSize: number
}

/** What orders sort files by. Names sort as paths do: they are those of one directory. */
export type SortedFile = Pick<FileRow, 'path' | 'size' | 'updatedAt'>

export interface FileList {
  rows: FileRow[]
  total: number
  /** False: `total` is a lower bound. */
  isExact: boolean
  /** The last of these files, if others follow. */
  next?: SortedFile | undefined
}

/** Text as searches compare it: case and Unicode spelling do not matter. Upper case, since sigma has two small forms. */
export const fold = (text: string) => text.toLowerCase().toUpperCase().normalize('NFC')

/** What determines the files of a list and their order, without the page. */
export const keyOf = ({ category, search, prefix, recursive, sort }: ListQuery) => [
  search && fold(search),
  category,
  prefix,
  recursive,
  sort,
]

export interface TreeQuery {
  /** The directory to start at; the root is empty. */
  prefix: string
  /** Levels to open. */
  depth: number
}

/** What identifies a tree. */
export interface TreeState {
  files: number
  /** Strong entity tag over all names and digests: the same for every form of the tree. */
  etag: string
}
