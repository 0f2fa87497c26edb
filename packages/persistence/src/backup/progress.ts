import type { Writable } from 'node:stream'
import type { KeptFile } from './backup.ts'

const perLine = { terminal: 100, file: 5000 }

type Stream = Writable & { isTTY?: boolean }

interface Amount {
  count: number
  bytes: number
}

/**
 * Tells how far the work is: at a terminal in one line that is written over, else in a line now and then.
 * `database` and `kept` are told of what is done, and can be handed on as they are.
 */
export class Progress {
  readonly #stream: Stream
  #phase = ''
  #of: Amount = { count: 0, bytes: 0 }
  #done: Amount = { count: 0, bytes: 0 }
  #begun = 0
  #told = Date.now()

  constructor(stream: Stream) {
    this.#stream = stream
  }

  begin(phase: string, of: Amount) {
    this.#phase = phase
    this.#of = of
    this.#done = { count: 0, bytes: 0 }
    this.#begun = Date.now()
  }

  readonly database = (done: number) => this.#tell(() => `database: ${Math.floor(100 * done)} %`)

  readonly kept = ({ size }: KeptFile) => {
    this.#done.count += 1
    this.#done.bytes += size
    this.#tell(() => {
      const rate = (1000 * this.#done.bytes) / Math.max(1, Date.now() - this.#begun)
      const files = `${this.#done.count} of ${this.#of.count} contents`
      const bytes = `${inMegabytes(this.#done.bytes)} of ${inMegabytes(this.#of.bytes)} MB`
      return `${this.#phase} ${files}, ${bytes}, ${inMegabytes(rate)} MB/s`
    })
  }

  /** Leaves a terminal's line empty. */
  end() {
    if (this.#stream.isTTY) this.#stream.write('\r\x1b[K')
  }

  #tell(line: () => string) {
    const now = Date.now()
    if (now - this.#told < (this.#stream.isTTY ? perLine.terminal : perLine.file)) return
    this.#told = now
    this.#stream.write(this.#stream.isTTY ? `\r\x1b[K${line()}` : `${line()}\n`)
  }
}

const inMegabytes = (bytes: number) => Math.round(bytes / 1_000_000)
