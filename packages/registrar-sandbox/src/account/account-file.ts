import { open, readFile, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { State } from './account.ts'

/** Stores the account in one file, replaced atomically. */
export class StateFile {
  readonly #path: string
  #last: Promise<void> = Promise.resolve()

  constructor(path: string) {
    this.#path = path
  }

  /** The state as last saved; undefined if there is no file. Throws if the file is invalid. */
  async load(): Promise<State | undefined> {
    try {
      return State.parse(JSON.parse(await readFile(this.#path, 'utf8')))
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
      throw new Error(`Cannot read the state in ${this.#path}`, { cause: error })
    }
  }

  /** Resolves when the state, or a later one, is durable. Saves run in order. */
  save(state: State): Promise<void> {
    const next = () => this.#write(JSON.stringify(state, null, 2))
    this.#last = this.#last.then(next, next)
    return this.#last
  }

  async #write(text: string): Promise<void> {
    const draft = `${this.#path}.new`
    await flush(draft, 'w', text)
    await rename(draft, this.#path)
    await flush(dirname(this.#path), 'r')
  }
}

async function flush(path: string, flags: string, text?: string): Promise<void> {
  const file = await open(path, flags)
  try {
    if (text !== undefined) await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}
