import { type ContentCoding, compressedCodings } from '../rfc9110/content-codings.ts'

/** Content codings; databases store the index. */
export const contentCodings: readonly ContentCoding[] = ['identity', ...compressedCodings]

/** Blobs and compressed forms up to this size are database rows; larger ones are files or objects. */
export const maxSmallBytes = 32_768

/** The path of a blob, or of its compressed form, below `blobs`. */
export const blobPathOf = (digest: string, form: ContentCoding = 'identity') =>
  [digest.slice(0, 2), digest.slice(2, 4), form === 'identity' ? digest : `${digest}.${form}`] as const

/** Group-readable for a proxy that sends files itself (docs/proxy.md); the mode of the data folder excludes others. */
export const blobMode = 0o640

export const folderMode = 0o750
