import type { ChangeAction } from '../../src/catalog/tables.ts'

/** What was at a path from one change until another. */
interface Row {
  path: string
  content: string
  from: number
  /** Infinity: it is there. */
  until: number
  isKept: boolean
  /** It ended longer ago than the past is kept. */
  isOld: boolean
}

interface RowChange {
  path: string
  before: Row | undefined
  after: Row | undefined
  isForgotten?: boolean
}

interface RecordedChange {
  id: number
  action: ChangeAction
  prefix: string | null
  version: string | null
  slices: number
  files: RowChange[]
}

/** Contents by path; undefined: no file. Paths that a change leaves alone are not among them. */
export type Wanted = Map<string, string | undefined>

interface Cause {
  action: ChangeAction
  prefix?: string
  version?: string | undefined
  /** In how many transactions it was made; 0: in one as a whole. */
  slices?: number
}

/** Every state that the files were ever in, kept as simply as it can be: a list of rows, and loops over all of it. */
export class HistoryModel {
  readonly changes: RecordedChange[] = []
  readonly versions: { version: string; change: number }[] = []
  rules = { keepDays: 30, keepVersions: 2 }
  #rows: Row[] = []
  #nextId = 1
  /** Contents that are kept without a file. */
  #uploaded = new Map<string, { keepDays: number; isOld: boolean }>()

  get last(): number {
    return this.changes.at(-1)?.id ?? 0
  }

  get paths(): string[] {
    return [...new Set(this.changes.flatMap(({ files }) => files.map(({ path }) => path)))]
  }

  /** By path, what is below a directory; the root is empty, others end in a slash. */
  now(directory = ''): Map<string, string> {
    return contentsOf(this.#rows.filter(({ until }) => until === Infinity).filter(isBelow(directory)))
  }

  /** As the change left it; undefined where not all of it is kept. */
  at(change: number, directory = ''): Map<string, string> | undefined {
    const rows = this.#rows.filter(isThereAt(change)).filter(isBelow(directory))
    return rows.every(({ isKept }) => isKept) ? contentsOf(rows) : undefined
  }

  /** One file likewise. */
  fileAt(change: number, path: string): string | 'missing' | 'gone' {
    const row = this.#rows.filter(isThereAt(change)).find((each) => each.path === path)
    if (row) return row.isKept ? row.content : 'gone'
    const last = this.changes
      .filter(({ id }) => id <= change)
      .flatMap(({ files }) => files.filter((file) => file.path === path))
      .at(-1)
    return last?.isForgotten ? 'gone' : 'missing'
  }

  /** Whether a path would be a file and a directory. */
  conflicts(wanted: Wanted): boolean {
    const after = this.now()
    for (const [path, content] of wanted) {
      if (content === undefined) after.delete(path)
      else after.set(path, content)
    }
    return areInConflict([...after.keys()])
  }

  /** Makes these changes, each of which makes or ends a row, also where the content is equal. */
  apply({ action, prefix, version, slices = 0 }: Cause, wanted: Wanted): RecordedChange | undefined {
    const id = this.#nextId
    const files = [...wanted].flatMap(([path, content]): RowChange[] => {
      const before = this.#rows.find((row) => row.path === path && row.until === Infinity)
      const row = { path, content: content ?? '', from: id, until: Infinity }
      const after = content === undefined ? undefined : { ...row, isKept: true, isOld: false }
      return before || after ? [{ path, before, after }] : []
    })
    if (files.length === 0) return undefined
    this.#nextId += 1 + slices
    for (const { before, after } of files) {
      if (before) {
        before.until = id
        before.isKept = this.rules.keepDays > 0 || this.#isShown(before)
      }
      if (after) this.#rows.push(after)
    }
    const change = { id, action, prefix: prefix ?? null, version: version ?? null, slices, files }
    this.changes.push(change)
    return change
  }

  /** Removes files with all their past; returns the contents that nothing has any more, if all the paths are known. */
  forget(paths: string[]): Set<string> | undefined {
    if (paths.some((path) => !this.paths.includes(path))) return undefined
    const there = paths.filter((path) => this.now().has(path))
    const change = this.apply({ action: 'delete' }, new Map(there.map((path) => [path, undefined])))
    const files = change?.files ?? []
    for (const path of paths) if (!there.includes(path)) files.push({ path, before: undefined, after: undefined })
    const recorded = { action: 'delete', prefix: null, version: null, slices: 0, files } as const
    if (!change) this.changes.push({ ...recorded, id: this.#nextId++ })
    for (const file of this.changes.flatMap((each) => each.files))
      if (paths.includes(file.path)) file.isForgotten = true
    const contents = new Set(this.#rows.flatMap((row) => (paths.includes(row.path) ? row.content : [])))
    for (const content of contents) this.#uploaded.delete(content)
    this.#rows = this.#rows.filter(({ path }) => !paths.includes(path))
    const { current, past } = this.contents
    return without(without(contents, current), past)
  }

  /** What makes the directory equal to these contents. */
  differences(directory: string, contents: Map<string, string>, isMerge: boolean): Wanted {
    const now = this.now(directory)
    const wanted: Wanted = new Map()
    if (!isMerge) for (const path of now.keys()) if (!contents.has(path)) wanted.set(path, undefined)
    for (const [path, content] of contents) if (now.get(path) !== content) wanted.set(path, content)
    return wanted
  }

  /** What takes a change back. */
  reverted({ files }: RecordedChange, overwrite: boolean): Wanted | 'gone' | 'conflict' {
    if (files.some(({ before, isForgotten }) => isForgotten || (before && !before.isKept))) return 'gone'
    const now = this.now()
    if (!overwrite && files.some(({ path, after }) => now.get(path) !== after?.content)) return 'conflict'
    const differing = files.filter(({ path, before }) => now.get(path) !== before?.content)
    const wanted: Wanted = new Map(differing.map(({ path, before }) => [path, before?.content]))
    return wanted.size === 0 || this.conflicts(wanted) ? 'conflict' : wanted
  }

  upload(content: string): void {
    this.#uploaded.set(content, { keepDays: this.rules.keepDays, isOld: false })
  }

  /** All that has ended by now ended long ago. */
  age(): void {
    for (const row of this.#rows) if (row.until < Infinity) row.isOld = true
    for (const content of this.#uploaded.values()) content.isOld = true
  }

  /** Removes what need not be kept. */
  prune(): void {
    const { keepDays } = this.rules
    for (const row of this.#past) if ((keepDays === 0 || row.isOld) && !this.#isShown(row)) row.isKept = false
    for (const [content, kept] of this.#uploaded)
      if (kept.isOld || keepDays < kept.keepDays) this.#uploaded.delete(content)
  }

  /** Each row of the past, as the change that made it and its path. */
  get pastRows(): string[] {
    return this.#past.map(({ from, path }) => `${from} ${path}`).sort()
  }

  /** The contents that files have; those that only the past has. */
  get contents(): { current: Set<string>; past: Set<string> } {
    const current = new Set(this.now().values())
    const past = new Set([...this.#past.map(({ content }) => content), ...this.#uploaded.keys()])
    return { current, past: without(past, current) }
  }

  get #past(): Row[] {
    return this.#rows.filter(({ until, isKept }) => until < Infinity && isKept)
  }

  #isShown(row: Row): boolean {
    const { keepVersions } = this.rules
    const kept = keepVersions === 0 ? [] : this.versions.slice(-keepVersions)
    return kept.some(({ change }) => isThereAt(change)(row))
  }
}

/** The elements of a set that another one has not. */
export const without = (set: Set<string>, other: Set<string>) => new Set([...set].filter((each) => !other.has(each)))

const contentsOf = (rows: Row[]) => new Map(rows.map(({ path, content }) => [path, content]))

const isThereAt = (change: number) => (row: Row) => row.from <= change && change < row.until

const isBelow = (directory: string) => (row: Row) => row.path.startsWith(directory)

/** Whether one of the paths is a directory of another. */
export const areInConflict = (paths: string[]): boolean =>
  paths.some((path) => paths.some((other) => other.startsWith(`${path}/`)))
