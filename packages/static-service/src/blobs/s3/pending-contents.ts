/** A content that has arrived and that no committed file refers to yet: its bytes, or the object that holds them. */
export type PendingContent = { digest: string; size: number } & (
  | { bytes: Uint8Array }
  | { key: string; etag: string | undefined }
)

/** Contents that wait for the commit of the files that refer to them. The same content may have arrived several times. */
export class PendingContents {
  readonly #byDigest = new Map<string, Set<PendingContent>>()

  /** It waits until the returned function is called. */
  add(content: PendingContent): () => void {
    const known = this.#byDigest.get(content.digest)
    const contents = known ?? new Set()
    contents.add(content)
    if (!known) this.#byDigest.set(content.digest, contents)
    return () => {
      contents.delete(content)
      if (contents.size === 0 && this.#byDigest.get(content.digest) === contents) {
        this.#byDigest.delete(content.digest)
      }
    }
  }

  of(digest: string): PendingContent[] {
    return [...(this.#byDigest.get(digest) ?? [])]
  }

  get count(): number {
    return this.#byDigest.size
  }
}
