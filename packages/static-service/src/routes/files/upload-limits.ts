import type { IncomingHttpHeaders } from 'node:http'
import type { Catalog } from '../../catalog/catalog.ts'
import { contentCodingNotSupported, fileTooLarge, quotaExceeded } from '../../errors.ts'
import type { Conditions } from '../../rfc9110/entity-tags.ts'

interface Dependencies {
  catalog: Catalog
  maxBytes: number
  /** Maximum size of all distinct contents; undefined: none. */
  quotaBytes: number | undefined
}

/**
 * Refuses uploads as early as their end is certain: by Content-Length, by what is stored at the path, or as soon as a
 * limit is passed. The transaction that enters the file decides in the end.
 */
export class UploadLimits {
  readonly #dependencies: Dependencies

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  get maxBytes() {
    return this.#dependencies.maxBytes
  }

  /** @throws {HttpError} `file_too_large` or `quota_exceeded` for a file of this size or more, whatever is stored. */
  checkSize(bytes: number): void {
    const { maxBytes, quotaBytes = Number.POSITIVE_INFINITY } = this.#dependencies
    if (bytes > maxBytes) throw fileTooLarge(maxBytes)
    if (bytes > quotaBytes) throw quotaExceeded(quotaBytes)
  }

  /** @throws {HttpError} `path_conflict` or `precondition_failed`. */
  checkTarget(path: string, conditions: Conditions): Promise<void> {
    return this.#dependencies.catalog.checkPut(path, conditions)
  }

  /** @throws {HttpError} `quota_exceeded` when a file of exactly this size cannot be stored at the path. */
  checkQuota(path: string, size: number): Promise<void> {
    return this.#dependencies.catalog.checkQuota(path, { minBytes: size, maxBytes: size })
  }

  /** Counts the bytes of one file as they arrive; the path is undefined while it is unknown. */
  meter(path: string | undefined): SizeMeter {
    let total = 0
    let nextCheck = quotaCheckBytes
    return (bytes) => {
      total += bytes
      this.checkSize(total)
      if (path === undefined || total < nextCheck) return undefined
      nextCheck = total + quotaCheckBytes
      return this.#dependencies.catalog.checkQuota(path, {
        minBytes: total,
        maxBytes: this.#dependencies.maxBytes,
      })
    }
  }
}

/** @throws {HttpError} `unsupported_media_type` for a body that would have to be decoded to be stored. */
export function refuseContentCoding({ 'content-encoding': coding }: IncomingHttpHeaders): void {
  if (coding !== undefined && coding.toLowerCase() !== 'identity') throw contentCodingNotSupported()
}

/**
 * Takes the size of each chunk; a promise where the next chunk has to wait for a check.
 * @throws {HttpError} `file_too_large` or `quota_exceeded`.
 */
export type SizeMeter = (bytes: number) => Promise<void> | undefined

// The check reads the catalog, so not for each chunk.
const quotaCheckBytes = 1_048_576
