/** Collects the values of a statement while its text is written. */
export class Parameters {
  readonly values: unknown[] = []

  /** The placeholder of a value in the text. */
  add(value: unknown): string {
    this.values.push(value)
    return `$${this.values.length}`
  }
}
