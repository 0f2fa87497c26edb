import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { z } from 'zod'

const Line = z.object({
  name: z.string(),
  path: z.string(),
  to: z.string().optional(),
  bytes: z.base64().optional(),
  /** How long the journal was when the call began: a flush is about what had ended by then. */
  since: z.int(),
})

type Line = z.infer<typeof Line>

interface File {
  written: { bytes: Buffer; at: number }[]
  /** Bytes that a flush has made durable. */
  flushed: number
}

/** What a name stands for, first what is durable, then what it became since; undefined is nothing. */
interface Folder {
  names: Map<string, { node: File | Folder | undefined; at: number }[]>
}

/** Which of the states that a loss of power may leave it does leave. */
export interface Chance {
  /** Of so many states of a name, oldest first, the number of one. */
  ofName: (states: number) => number
  /** Of a file, how many bytes are there, from those flushed to those written. */
  ofBytes: (flushed: number, written: number) => number
}

/** Kinds of flushes: of a file, of its own folder, of the folders above that in the store, of those above the store. */
export type Flush = 'file' | 'folder' | 'shard' | 'ancestor'

/**
 * The folder that a journal of record-disk.ts tells of, as the disk may have it after the power was lost: nothing that
 * was not flushed has to be there, neither bytes nor names, and in no order; but of one name each state follows the
 * last. Stricter than the common file systems, which write much of it together.
 */
export class DiskImage {
  readonly #root: string
  readonly #top: Folder = { names: new Map() }

  /** `without`: reads the journal as if such flushes had never been made. */
  constructor(journal: string, root: string, without?: Flush) {
    this.#root = root
    const lines = readFileSync(journal, 'utf8').split('\n').slice(0, -1)
    let at = 0
    for (const text of lines) {
      const line = Line.parse(JSON.parse(text))
      if (this.#isInside(line.path) && !this.#isLeftOut(line, without)) this.#apply(line, at)
      at += Buffer.byteLength(text) + 1
    }
  }

  /** Makes the folder anew at another place. */
  write(target: string, chance: Chance): void {
    writeFolder(this.#top, target, chance)
  }

  #isLeftOut({ name, path }: Line, without: Flush | undefined): boolean {
    return name === 'sync' && this.#kindOf(path) === without
  }

  #apply({ name, path, to = '', bytes, since }: Line, at: number) {
    const node = this.#find(path)
    if (name === 'mkdir') this.#makeFolders(path, at)
    else if (name === 'open' && to?.startsWith('wx')) this.#enter(path, { written: [], flushed: 0 }, at)
    else if (name === 'rename' || name === 'link') this.#enter(to, node, at)
    else if (name === 'sync' && node) flush(node, since)
    else if (name === 'write' && node && 'written' in node) {
      node.written.push({ bytes: Buffer.from(bytes ?? '', 'base64'), at })
    }
    if ((name === 'rename' || name === 'rm') && node) this.#enter(path, undefined, at)
  }

  #makeFolders(path: string, at: number) {
    if (!this.#isInside(path) || path === this.#root) return
    this.#makeFolders(dirname(path), at)
    if (!this.#find(path)) this.#enter(path, { names: new Map() }, at)
  }

  #enter(path: string, node: File | Folder | undefined, at: number) {
    const folder = this.#find(dirname(path))
    if (!folder || 'written' in folder) throw new Error(`no folder was seen made for ${path}`)
    const states = folder.names.get(basename(path)) ?? [{ node: undefined, at: -1 }]
    folder.names.set(basename(path), [...states, { node, at }])
  }

  /** What is at a path as the running process sees it. */
  #find(path: string): File | Folder | undefined {
    const names = relative(this.#root, path).split('/').filter(Boolean)
    let node: File | Folder | undefined = this.#top
    for (const name of names) {
      node = node && 'names' in node ? node.names.get(name)?.at(-1)?.node : undefined
    }
    return node
  }

  #isInside = (path: string) => !relative(this.#root, path).startsWith('..')

  #kindOf(path: string): Flush {
    const node = this.#find(path)
    if (node && 'written' in node) return 'file'
    if (/\/blobs\/[0-9a-f]{2}\/[0-9a-f]{2}$/.test(path)) return 'folder'
    return this.#find(join(path, 'blobs')) || /\/blobs\b/.test(path) ? 'shard' : 'ancestor'
  }
}

function flush(node: File | Folder, since: number) {
  if ('written' in node) {
    const flushed = node.written.filter(({ at }) => at < since)
    node.flushed = lengthOf(flushed)
    return
  }
  for (const states of node.names.values()) {
    const last = states.findLastIndex(({ at }) => at < since)
    states.splice(0, last)
  }
}

const lengthOf = (written: File['written']) => written.reduce((sum, { bytes }) => sum + bytes.length, 0)

function writeFolder(folder: Folder, target: string, chance: Chance) {
  mkdirSync(target, { recursive: true })
  for (const [name, states] of folder.names) {
    const node = states[chance.ofName(states.length)]?.node
    if (!node) continue
    if ('names' in node) writeFolder(node, join(target, name), chance)
    else writeFile(node, join(target, name), chance)
  }
}

function writeFile({ written, flushed }: File, target: string, chance: Chance) {
  const bytes = Buffer.concat(written.map((each) => each.bytes))
  writeFileSync(target, bytes.subarray(0, chance.ofBytes(flushed, bytes.length)))
}
