/** Contents that a command has left without files. */
export class FreedContents {
  readonly #found = new Map<string, { size: number; isGone: boolean }>()

  /** `isGone`: no past file has it either. */
  add(digest: string, freed: { size: number; isGone: boolean }) {
    this.#found.set(digest, freed)
  }

  /** It is referred to again. */
  keep(digest: string) {
    this.#found.delete(digest)
  }

  /** Those that nothing needs any more. */
  get digests(): string[] {
    return [...this.#found].flatMap(([digest, { isGone }]) => (isGone ? [digest] : []))
  }

  get bytes(): number {
    return [...this.#found.values()].reduce((total, { size }) => total + size, 0)
  }
}
