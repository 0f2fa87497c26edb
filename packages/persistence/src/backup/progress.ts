import type { Writable } from 'node:stream'

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
