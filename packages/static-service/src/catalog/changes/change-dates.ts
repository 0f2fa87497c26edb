/**
 * The dates that the changes of a transaction give to files, as ISO 8601. At one path they never go backwards, whatever the
 * clock does, and no two rows share a second that a client can have seen: a client that asks by date, in whole seconds (RFC
 * 9110, 8.8.2), must not take a new file for the one it has.
 */
export class ChangeDates {
  readonly #clock: string
  #latest: string

  /** `latest`: the latest date that the catalog knows. */
  constructor(nowMs: number, latest: string) {
    this.#clock = new Date(nowMs).toISOString()
    this.#latest = latest
  }

  get latest(): string {
    return this.#latest
  }

  /** The date of a file that is stored now, at the path of one with the date `before`. */
  of(before?: string): string {
    const isBehind = this.#clock < this.#latest
    const now = isBehind ? this.#latest : this.#clock
    const date = isBehind && before && secondOf(before) >= secondOf(now) ? nextSecond(before) : now
    this.atLeast(date)
    return date
  }

  /** A date that a file has already. */
  atLeast(date: string): void {
    if (date > this.#latest) this.#latest = date
  }

  /** A file with this date ends: one that is stored at its path later gets a later date. */
  end(before: string): void {
    this.of(before)
  }
}

const secondOf = (date: string) => date.slice(0, 19)

const nextSecond = (date: string) =>
  new Date((Math.floor(Date.parse(date) / 1000) + 1) * 1000).toISOString()
