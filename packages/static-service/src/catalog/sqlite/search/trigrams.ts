/**
 * Search index over paths: runs of three bytes, shorter ones at the end. A run of UTF-8 bytes occurs only where its
 * characters do, so one index serves every alphabet, and its prefixes serve terms of one letter.
 */

/** The distinct trigrams of a folded text. */
export const trigramsOf = (folded: string) => [...new Set(starts(Buffer.from(folded)))]

/** What the index holds for a file. */
export const bodyOf = (folded: string, category: string) =>
  [...trigramsOf(folded), category].join(' ')

export interface Term {
  folded: string
  /** Only files of this category. */
  category?: string | undefined
  /** Estimated share of the files that contain a trigram, 0 to 1. */
  shareOf: (trigram: string) => number
}

export interface Match {
  /** FTS5 query. */
  match: string
  /** True when every result contains the term. */
  isExact: boolean
  /** Estimated share of the files that the query reads, 0 to 1. */
  share: number
}

/** The index query for a term. */
export function matchOf({ folded, category, shareOf }: Term): Match {
  const bytes = Buffer.from(folded)
  const isShort = bytes.length < trigramLength
  const { trigrams, share } = isShort
    ? { trigrams: [`"${write(bytes)}" *`], share: 1 }
    : rarest(bytes, shareOf)
  const match = (category ? [...trigrams, category] : trigrams).join(' AND ')
  return { match, isExact: bytes.length <= trigramLength, share }
}

const trigramLength = 3

// FTS5 reads the files of the first trigram and probes the others for each: the rarest leads. The rows are compared
// with the term anyway, so trigrams of nearly every file are omitted.
function rarest(bytes: Buffer, shareOf: Term['shareOf']) {
  const trigrams = [...new Set(starts(bytes).slice(0, 1 - trigramLength))]
    .map((trigram) => ({ trigram, share: shareOf(trigram) }))
    .sort((one, other) => one.share - other.share)
  const useful = trigrams.filter(({ share }, at) => at === 0 || share < commonShare)
  return {
    trigrams: useful.slice(0, maxTrigrams).map(({ trigram }) => `"${trigram}"`),
    share: trigrams[0]?.share ?? 0,
  }
}

const maxTrigrams = 4

const commonShare = 0.3

const starts = (bytes: Buffer) =>
  Array.from(bytes, (_byte, at) => write(bytes.subarray(at, at + trigramLength)))

// The tokenizer keeps every letter beyond ASCII as it is; ASCII is left for the categories.
const write = (bytes: Buffer) => String.fromCharCode(...Array.from(bytes, (byte) => 0x100 + byte))
