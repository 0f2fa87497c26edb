import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

interface Parts {
  dataDir: string
  /** Says what is unflushed by now. */
  begin: () => Promise<number>
  /** Told once that is on the disk. */
  end: (generation: number) => Promise<void>
  /** Told when the disk could not be flushed; nothing is lost, and nothing is left unflushed from then on. */
  onError: (error: unknown) => void
}

/**
 * Brings files to the disk in the background that were written without waiting for it, many at once: `sync -f` flushes
 * the whole file system (syncfs(2)), which takes hardly longer for a thousand small files than for one.
 */
export class Flusher {
  readonly #parts: Parts
  readonly #ending = new AbortController()
  #bytes = 0
  #isSound = true
  #running: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** How many bytes a content may have whose file need not be flushed before it is answered; 0: none may. */
  get most(): number {
    return this.#isSound && this.#bytes < mostWaiting ? mostOfOne : 0
  }

  /** So many bytes more wait to be flushed. */
  note(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes >= enough) this.#begin()
    else this.#timer ??= setTimeout(() => this.#begin(), patience).unref()
  }

  /** Nothing is left unflushed from now on, and what waits stays where it is safe. */
  giveUp(): void {
    this.#isSound = false
    clearTimeout(this.#timer)
  }

  /** Flushes what waits, or after three seconds leaves it to the next start. */
  async close(): Promise<void> {
    const bound = setTimeout(() => this.#ending.abort(), 3000)
    await this.#running
    if (this.#bytes > 0) this.#begin()
    await this.#running
    clearTimeout(bound)
    this.giveUp()
  }

  #begin() {
    if (!this.#isSound) return
    this.#running ??= this.#flush().then(() => {
      this.#running = undefined
      if (this.#bytes > 0) this.note(0)
    })
  }

  async #flush() {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const { dataDir, begin, end, onError } = this.#parts
    const bytes = this.#bytes
    const { signal } = this.#ending
    try {
      const generation = await begin()
      await run('sync', ['-f', dataDir], { signal })
      await end(generation)
      this.#bytes -= bytes
    } catch (error) {
      this.giveUp()
      if (!signal.aborted) onError(error)
    }
  }
}

const run = promisify(execFile)

// Up to here the bytes are written twice sooner than a file is flushed.
const mostOfOne = 32_768
const mostWaiting = 67_108_864
const enough = 16_777_216
const patience = 1000
