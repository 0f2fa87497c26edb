import { createHash } from 'node:crypto'
import type { Node } from './start.ts'

const kinds: Record<string, [type: string, category: string]> = {
  png: ['image/png', 'image'],
  html: ['text/html', 'code'],
  txt: ['text/plain', 'document'],
}

const kindOf = (path: string, content: string): [type: string, category: string] =>
  kinds[path.split('.').at(-1) ?? ''] ??
  (content === '' ? ['application/octet-stream', 'other'] : ['text/plain', 'document'])

export interface Known {
  path: string
  content: string
  size: number
  type: string
  category: string
}

interface ModelQuery {
  search?: string
  category?: string
  prefix?: string
  recursive?: boolean
  sort: string
}

/** What the service should hold, kept as simply as it can be: a map, and loops over all of it. */
export class Model {
  readonly #files = new Map<string, Known>()

  /** Stores all of these or, when a path would be both a file and a directory, none: then it says so. */
  put(files: { path: string; content: string }[]): 'new' | 'replaced' | 'conflict' {
    const paths = new Set([...this.#files.keys(), ...files.map(({ path }) => path)])
    const all = [...paths]
    if (all.some((path) => all.some((other) => other.startsWith(`${path}/`)))) return 'conflict'
    const isNew = files.every(({ path }) => !this.#files.has(path))
    for (const { path, content } of files) {
      const [type, category] = kindOf(path, content)
      this.#files.set(path, { path, content, size: Buffer.byteLength(content), type, category })
    }
    return isNew ? 'new' : 'replaced'
  }

  /** Moves files, or none; a directory where both paths end in a slash. Says how many were moved. */
  move(from: string, to: string, overwrite: boolean): number | 'conflict' | 'missing' {
    const isDirectory = from.endsWith('/')
    const moving = this.files.filter(({ path }) => (isDirectory ? path.startsWith(from) : path === from))
    if (moving.length === 0) return 'missing'
    if (from === to) return 0
    if (isDirectory && to.startsWith(from)) return 'conflict'
    const before = new Map(this.#files)
    const moved = moving.map((file) => ({ ...file, path: to + file.path.slice(from.length) }))
    for (const { path } of moving) this.#files.delete(path)
    const isTaken = !overwrite && moved.some(({ path }) => this.#files.has(path))
    if (!isTaken && this.put(moved) !== 'conflict') return moved.length
    this.#files.clear()
    for (const [path, file] of before) this.#files.set(path, file)
    return 'conflict'
  }

  removeBelow(directory: string): number {
    const below = this.files.filter(({ path }) => path.startsWith(`${directory}/`))
    for (const { path } of below) this.#files.delete(path)
    return below.length
  }

  remove(path: string): boolean {
    return this.#files.delete(path)
  }

  has(path: string): boolean {
    return this.#files.has(path)
  }

  /** In the order of their paths' bytes. */
  get files(): Known[] {
    return [...this.#files.values()].sort((one, other) => byBytes(one.path, other.path))
  }

  list({ search = '', category, prefix = '', recursive = true, sort }: ModelQuery) {
    const start = prefix && `${prefix}/`
    const found = this.files.filter(
      (file) =>
        file.path.startsWith(start) &&
        (recursive || !file.path.slice(start.length).includes('/')) &&
        file.path.toLowerCase().includes(search.toLowerCase()) &&
        (category === undefined || file.category === category),
    )
    if (sort.endsWith('size')) found.sort((one, other) => one.size - other.size)
    if (sort.startsWith('-')) found.reverse()
    return found.map(({ path }) => path)
  }

  categories() {
    const counts = Object.entries(Object.groupBy(this.files, ({ category }) => category)).map(
      ([category, files = []]) => ({
        category,
        file_count: files.length,
        total_size: sum(files),
      }),
    )
    return counts.sort((one, other) => other.file_count - one.file_count || byBytes(one.category, other.category))
  }

  stats() {
    const { files } = this
    const contents = new Map(files.map((file) => [digest(file.content), file]))
    return {
      total_files: files.length,
      total_size: sum(files),
      stored_size: sum([...contents.values()]),
      past_size: 0,
      categories: this.categories(),
      versions: 0,
    }
  }

  tree(path = ''): Node {
    const start = path ? `${path}/` : ''
    const below = this.files.filter((file) => file.path.startsWith(start))
    const names = [...new Set(below.map((file) => file.path.slice(start.length).split('/')[0] ?? ''))]
    const nodes = names.sort(byBytes).map((name): Node => {
      const file = this.#files.get(start + name)
      if (!file) return this.tree(start + name)
      return {
        name,
        path: file.path,
        type: 'file',
        size: file.size,
        content_type: file.type,
      } as Node
    })
    return {
      name: path.split('/').at(-1) ?? '',
      path,
      type: 'directory',
      file_count: below.length,
      total_size: sum(below),
      children: [...nodes.filter(({ type }) => type === 'directory'), ...nodes.filter(({ type }) => type === 'file')],
    }
  }

  directories(): string[] {
    const all = this.files.flatMap(({ path }) => {
      const segments = path.split('/').slice(0, -1)
      return segments.map((_, at) => segments.slice(0, at + 1).join('/'))
    })
    return [...new Set(all)]
  }
}

export const digest = (content: string) => createHash('sha256').update(content).digest('hex')

const byBytes = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other))

const sum = (files: Known[]) => files.reduce((total, { size }) => total + size, 0)
