const maxLength = 3

/** Numbers of the runs of bytes that stand for a text in the index: its trigrams, or itself if it is shorter. */
export function trigramsOf(folded: string): number[] {
  const bytes = Buffer.from(folded)
  const length = Math.min(bytes.length, maxLength)
  const runs = Array.from({ length: bytes.length - length + 1 }, (_, at) =>
    numberOf(bytes.subarray(at, at + length)),
  )
  return [...new Set(runs)]
}

/** The number that stands for a category: its first two letters are its own. */
export const categoryNumber = (category: string) =>
  -((category.charCodeAt(0) << 8) + category.charCodeAt(1))

// As the function static_service.trigrams does: runs of one, two and three bytes have ranges of their own.
function numberOf(run: Buffer): number {
  const [first = 0, second = 0, third = 0] = run
  if (run.length === 1) return first
  if (run.length === 2) return 256 + (first << 8) + second
  return 65_792 + (first << 16) + (second << 8) + third
}
