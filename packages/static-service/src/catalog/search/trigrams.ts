/**
 * Paths are found by their grams: runs of three bytes, shorter ones at the end. A run of bytes of UTF-8 is found where
 * its characters are and nowhere else, so one index serves every alphabet, and by their prefixes terms of one letter too.
 */

/** A text as searches compare it: case and Unicode spelling do not matter. In capitals, since sigma has two small forms. */
export const fold = (text: string) => text.toLowerCase().toUpperCase().normalize('NFC')

/** The grams of a folded text, each once. */
export const trigramsOf = (folded: string) => [...new Set(starts(Buffer.from(folded)))]

/** What the index holds for a file. */
export const bodyOf = (folded: string, category: string) =>
  [...trigramsOf(folded), category].join(' ')

export interface Term {
  folded: string
  /** Only files of this category. */
  category?: string | undefined
  /** About which share of the files holds a gram, 0 to 1. */
  shareOf: (gram: string) => number
}

/** How a term is looked for in the index; `isExact` when nothing else than its hits is found. */
export function matchOf({ folded, category, shareOf }: Term): { match: string; isExact: boolean } {
  const bytes = Buffer.from(folded)
  const grams = bytes.length < gramLength ? [`"${write(bytes)}" *`] : rarest(bytes, shareOf)
  const match = (category ? [...grams, category] : grams).join(' AND ')
  return { match, isExact: bytes.length <= gramLength }
}

const gramLength = 3

// The index walks the first gram's files and asks the others for each: the rarest leads. The rows that are found are
// compared anyway, so what nearly every file has is not worth asking for.
function rarest(bytes: Buffer, shareOf: Term['shareOf']): string[] {
  const grams = [...new Set(starts(bytes).slice(0, 1 - gramLength))]
    .map((gram) => ({ gram, share: shareOf(gram) }))
    .sort((one, other) => one.share - other.share)
  const useful = grams.filter(({ share }, at) => at === 0 || share < commonShare)
  return useful.slice(0, mostGrams).map(({ gram }) => `"${gram}"`)
}

const mostGrams = 4

const commonShare = 0.3

const starts = (bytes: Buffer) =>
  Array.from(bytes, (_byte, at) => write(bytes.subarray(at, at + gramLength)))

// The tokenizer takes every letter beyond ASCII as it is; ASCII is left for the categories.
const write = (bytes: Buffer) => String.fromCharCode(...Array.from(bytes, (byte) => 0x100 + byte))
