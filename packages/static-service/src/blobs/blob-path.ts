export const encodedForms = ['br', 'zstd', 'gzip'] as const

/** The content itself, or one of its compressed forms. */
export type ContentCoding = 'identity' | (typeof encodedForms)[number]

/** Where below `blobs` a form of a content lies. */
export const blobPathOf = (digest: string, form: ContentCoding = 'identity') =>
  [
    digest.slice(0, 2),
    digest.slice(2, 4),
    form === 'identity' ? digest : `${digest}.${form}`,
  ] as const

/** A proxy that sends files reads them by their group (docs/proxy.md); nobody comes that far whom the data folder keeps out. */
export const blobMode = 0o640

/** Of a folder below `blobs`. */
export const folderMode = 0o750
