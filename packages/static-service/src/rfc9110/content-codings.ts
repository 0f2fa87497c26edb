/** The codings of compressed representations, the one that compresses best first. */
export const compressedCodings = ['br', 'zstd', 'gzip'] as const

export type CompressedCoding = (typeof compressedCodings)[number]

/** The coding of a representation (RFC 9110, 8.4.1); `identity` is the file as it was stored. */
export type ContentCoding = 'identity' | CompressedCoding

/** Databases store the index. */
export const contentCodings: readonly ContentCoding[] = ['identity', ...compressedCodings]
