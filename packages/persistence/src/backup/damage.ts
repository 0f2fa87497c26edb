import { DataDirError } from '../errors.ts'
import type { Damage } from './rows.ts'

/** Why a content cannot be read. */
export function unreadable(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
  return `cannot be read (${code})`
}

/** The damaged contents that a backup or a check has met, each once. */
export class DamageList {
  readonly #faults = new Map<string, string>()

  readonly add = ({ sha256, fault }: Damage) => {
    if (!this.#faults.has(sha256)) this.#faults.set(sha256, fault)
  }

  /** Adds what a backup's manifest names: altered bytes of the right size show only when every byte is read. */
  addKnown(digests: string[]): void {
    for (const sha256 of digests) this.add({ sha256, fault: 'was damaged when it was backed up' })
  }

  get digests(): string[] {
    return [...this.#faults.keys()]
  }

  /** One line for each file that has such a content, after a sentence; empty if there are none. */
  describe(sentence: string, pathsOf: (sha256: string) => string[]): string {
    if (this.#faults.size === 0) return ''
    const lines = [...this.#faults].flatMap(([sha256, fault]) =>
      pathsOf(sha256).map((path) => `  ${path}: its content ${sha256} ${fault}`),
    )
    return [`${this.#faults.size} ${sentence}:`, ...lines].join('\n')
  }

  /** @throws {DataDirError} that names every file, if there is damage. */
  refuse(pathsOf: (sha256: string) => string[]): void {
    const text = this.describe('contents are damaged', pathsOf)
    if (text) throw new DataDirError(text)
  }
}
