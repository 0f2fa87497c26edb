import {
  type CompressedCoding,
  type ContentCoding,
  compressedCodings as encodedForms,
} from '../rfc9110/content-codings.ts'

export { type CompressedCoding, type ContentCoding, encodedForms }

/** The content codings by the number that databases have for them. */
export const contentCodings: readonly ContentCoding[] = ['identity', ...encodedForms]

/** Contents and compressed forms of up to this many bytes are rows of a database, larger ones are files or objects. */
export const maxSmallBytes = 32_768

/** The path of a content, or of a compressed form, below `blobs`. */
export const blobPathOf = (digest: string, form: ContentCoding = 'identity') =>
  [
    digest.slice(0, 2),
    digest.slice(2, 4),
    form === 'identity' ? digest : `${digest}.${form}`,
  ] as const

/** A proxy that sends files itself reads them by their group (docs/proxy.md); the data folder keeps all others out. */
export const blobMode = 0o640

/** The mode of directories below `blobs`. */
export const folderMode = 0o750
