/**
 * Paths are found by their grams: runs of three bytes, shorter ones at the end. A run of bytes of UTF-8 is found where
 * its characters are and nowhere else, so one index serves every alphabet, and by their prefixes terms of one letter too.
 */

/** A text as searches compare it: case and Unicode spelling do not matter. In capitals, since sigma has two small forms. */
export const fold = (text: string) => text.toLowerCase().toUpperCase().normalize('NFC')

/** What the index holds for a file. */
export const gramsOf = (folded: string, category: string) =>
  [...new Set(starts(Buffer.from(folded)))].join(' ').concat(' ', category)

/** How a folded term is looked for, among all files or those of a category; `isExact` when nothing else is found. */
export function matchOf(folded: string, category?: string): { match: string; isExact: boolean } {
  const bytes = Buffer.from(folded)
  const grams =
    bytes.length < gramLength
      ? [`"${write(bytes)}" *`]
      : [...new Set(starts(bytes).slice(0, 1 - gramLength))].slice(0, mostGrams).map(quote)
  const match = (category ? [...grams, category] : grams).join(' AND ')
  return { match, isExact: bytes.length <= gramLength }
}

const gramLength = 3

// Each more makes the search narrower and slower; the rows that are found are compared anyway.
const mostGrams = 24

const starts = (bytes: Buffer) =>
  Array.from(bytes, (_byte, at) => write(bytes.subarray(at, at + gramLength)))

// The tokenizer takes every letter beyond ASCII as it is; ASCII is left for the categories.
const write = (bytes: Buffer) => String.fromCharCode(...Array.from(bytes, (byte) => 0x100 + byte))

const quote = (gram: string) => `"${gram}"`
