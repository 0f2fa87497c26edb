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
  #isRunning = false
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
    if (this.#bytes >= enough) void this.#flush()
    else this.#timer ??= setTimeout(() => void this.#flush(), patience).unref()
  }

  /** Leaves what waits as it is: safe, and found by the next start. */
  stop(): void {
    this.#isSound = false
    clearTimeout(this.#timer)
    this.#ending.abort()
  }

  async #flush() {
    if (this.#isRunning || !this.#isSound) return
    this.#isRunning = true
    clearTimeout(this.#timer)
    this.#timer = undefined
    const { dataDir, begin, end, onError } = this.#parts
    const bytes = this.#bytes
    try {
      const generation = await begin()
      await run('sync', ['-f', dataDir], { signal: this.#ending.signal })
      await end(generation)
      this.#bytes -= bytes
    } catch (error) {
      if (this.#isSound) onError(error)
      this.#isSound = false
    }
    this.#isRunning = false
    if (this.#bytes > 0) this.note(0)
  }
}

const run = promisify(execFile)

// Up to here the bytes are written twice sooner than a file is flushed.
const mostOfOne = 32_768
const mostWaiting = 67_108_864
const enough = 16_777_216
const patience = 1000
