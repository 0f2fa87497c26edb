import { link } from 'node:fs/promises'
import { BytesLost } from '../../errors.ts'
import { openFile } from '../blob-reader.ts'
import type { ResumableBlob } from '../blob-store.ts'
import { hashBlob } from '../integrity.ts'
import type { ContentHash, StagedBlob } from '../staged-blob.ts'
import type { StagingFile } from '../staging-file.ts'

interface Dependencies {
  newTmpFile: () => string
  stage: (file: string, arrived: ContentHash) => StagedBlob
}

/** A content that arrives in several requests: a file of `uploads`, of which so many bytes are saved. */
export function resumableFile(
  staging: StagingFile,
  { newTmpFile, stage }: Dependencies,
): ResumableBlob {
  const { file } = staging
  let { size: saved } = staging
  return {
    write: (chunk) => staging.write(chunk),

    async save() {
      if (staging.size === saved) return {}
      await staging.flush()
      saved = staging.size
      return { size: saved }
    },

    // A second link becomes the content: after a crash before the catalog's commit the bytes are still here. From now on
    // nothing is written to the file.
    async stage(hash) {
      await staging.settle() // Creates that of an empty upload.
      await using blob = await openFile(file, () => undefined)
      if (blob?.size !== staging.size) throw new BytesLost()
      const arrived = hash ?? (await hashBlob(blob))
      const tmpFile = newTmpFile()
      await link(file, tmpFile)
      return stage(tmpFile, arrived)
    },

    async [Symbol.asyncDispose]() {
      await staging.close()
      staging.release()
    },
  }
}
