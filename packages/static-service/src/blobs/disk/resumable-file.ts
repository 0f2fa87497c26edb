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

/** A blob that arrives in several requests: a file in `uploads`, of which the staged size is saved. */
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

    // Publishes a hard link, so that the upload keeps its bytes if a crash precedes the catalog's commit. The file must
    // not be written from now on.
    async stage(hash) {
      await staging.settle() // Creates the file of an empty upload.
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
