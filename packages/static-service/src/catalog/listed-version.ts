import type { VersionRow } from '../files/file-record.ts'
import type { ListedVersion } from './catalog.ts'

/** Maximum bytes of a changelog in a list. */
export const maxListedBytes = 1024

/** A version as it is listed; `bytes` is the size of its whole changelog. */
export const cutChangelog = ({ bytes, ...row }: VersionRow & { bytes: number }): ListedVersion => ({
  ...row,
  changelog: cutUtf8(row.changelog, maxListedBytes),
  isTruncated: bytes > maxListedBytes,
})

// At most this many bytes, cut between two characters.
function cutUtf8(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= maxBytes) return text
  let end = maxBytes
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return bytes.toString('utf8', 0, end)
}
