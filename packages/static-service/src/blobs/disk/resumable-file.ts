import { BytesLost } from '../../errors.ts'
import { openFile } from '../blob-reader.ts'
import type { ResumableBlob } from '../blob-store.ts'
import { hashBlob } from '../integrity.ts'
import type { ContentHash, StagedBlob } from '../staged-blob.ts'
import type { StagingFile } from '../staging-file.ts'

/**
 * A blob that arrives in several requests: a file in `uploads`, of which the staged size is saved. `stage` stages the
 * complete file and keeps it.
 */
export function resumableFile(
  staging: StagingFile,
  stage: (file: string, arrived: ContentHash) => Promise<StagedBlob>,
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

    async stage(hash) {
      await staging.settle() // Creates the file of an empty upload.
      await using blob = await openFile(file)
      if (blob?.size !== staging.size) throw new BytesLost()
      return stage(file, hash ?? (await hashBlob(blob)))
    },

    async [Symbol.asyncDispose]() {
      await staging.close()
      staging.release()
    },
  }
}
