import type { LoadedFiles } from './loaded-files.ts'

/** Which contents a transaction leaves referenced that were not before, and the reverse. */
export class ReferenceChanges {
  readonly #digests = new Map<string, { before: boolean; now: boolean }>()

  /** Takes over the changes of a table that was loaded after those of the earlier ones were written. */
  add({ blobs }: LoadedFiles): void {
    for (const { key, before, now } of blobs.changes()) {
      const known = this.#digests.get(key)
      this.#digests.set(key, {
        before: known?.before ?? before !== undefined,
        now: now !== undefined,
      })
    }
  }

  get added(): string[] {
    return this.#select(({ before, now }) => !before && now)
  }

  get freed(): string[] {
    return this.#select(({ before, now }) => before && !now)
  }

  #select(isWanted: (each: { before: boolean; now: boolean }) => boolean) {
    return [...this.#digests].flatMap(([digest, each]) => (isWanted(each) ? [digest] : []))
  }
}
