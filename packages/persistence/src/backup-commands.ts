import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { verifiedName } from './backup/archive.ts'
import type { runDataCommand as run } from './backup/data-command.ts'

/**
 * The commands `backup`, `restore`, `check` and `prune` of a service; resolves with the exit status. Loaded on demand,
 * since services and their worker threads do not need it, and zod alone takes 30 ms and 8 MiB in each.
 */
export const runDataCommand: typeof run = async (...args) => {
  const commands = await import('./backup/data-command.ts')
  return commands.runDataCommand(...args)
}

/** Start of the newest backup in a folder, and the last verification of one, in milliseconds since 1970; NaN: never. */
export async function readBackupTimes(folder: string): Promise<{ made: number; verified: number }> {
  const snapshots = join(folder, 'snapshots')
  const names = (await readdir(snapshots).catch(() => [])).filter((name) => !name.includes('.'))
  const verified = await Promise.all(
    names.map((name) => readFile(join(snapshots, name, verifiedName), 'utf8').catch(() => '')),
  )
  return { made: newest(names.map(timeOf)), verified: newest(verified) }
}

// The name of a snapshot is its time, with `-` for `:` and `.`.
const timeOf = (name: string) => name.replace(/^(.{13})-(..)-(..)-(.{4})$/, '$1:$2:$3.$4')

const newest = (times: string[]) => Date.parse(times.toSorted().at(-1)?.trim() ?? '')

const intervalMs = { terminal: 100, file: 5000 }

type Stream = Writable & { isTTY?: boolean }

interface Amount {
  count: number
  bytes: number
}

/**
 * Shows progress: on a terminal in one overwritten line, otherwise in a new line every five seconds.
 * `rows` and `blob` can be passed as callbacks.
 */
export class Progress {
  readonly #stream: Stream
  #phase = ''
  #rows = 0
  #of: Amount = { count: 0, bytes: 0 }
  #done: Amount = { count: 0, bytes: 0 }
  #begun = 0
  #shownAt = Date.now()

  constructor(stream: Stream) {
    this.#stream = stream
  }

  /** Begins to count blobs. */
  begin(phase: string, of: Amount) {
    this.#phase = phase
    this.#of = of
    this.#done = { count: 0, bytes: 0 }
    this.#begun = Date.now()
  }

  readonly rows = (count: number) => {
    this.#rows += count
    this.#show(() => `${this.#rows} rows`)
  }

  readonly blob = ({ size }: { size: number }) => {
    this.#done.count += 1
    this.#done.bytes += size
    this.#show(() => {
      const rate = (1000 * this.#done.bytes) / Math.max(1, Date.now() - this.#begun)
      const blobs = `${this.#done.count} of ${this.#of.count} blobs`
      const bytes = `${inMegabytes(this.#done.bytes)} of ${inMegabytes(this.#of.bytes)} MB`
      return `${this.#phase} ${blobs}, ${bytes}, ${inMegabytes(rate)} MB/s`
    })
  }

  /** Clears the line of a terminal. */
  end() {
    if (this.#stream.isTTY) this.#stream.write('\r\x1b[K')
  }

  #show(line: () => string) {
    const now = Date.now()
    if (now - this.#shownAt < (this.#stream.isTTY ? intervalMs.terminal : intervalMs.file)) return
    this.#shownAt = now
    this.#stream.write(this.#stream.isTTY ? `\r\x1b[K${line()}` : `${line()}\n`)
  }
}

const inMegabytes = (bytes: number) => Math.round(bytes / 1_000_000)
