import { openBlobFile } from '@domains-and-files/persistence'
import { BytesLost } from '../../errors.ts'
import type { StagedBlob, StagingFile } from '../staging-file.ts'
import { type ContentHash, hashBlob } from '../stored-blob.ts'

/** A blob that arrives in several requests: a file in `uploads`, of which the staged size is saved. */
export function resumableFile(
  staging: StagingFile,
  stage: (file: string, arrived: ContentHash) => Promise<StagedBlob>,
) {
  const { file } = staging
  let { size: saved } = staging
  return {
    write: (chunk: Buffer) => staging.write(chunk),

    async save() {
      if (staging.size === saved) return {}
      await staging.settle({ isFlushed: true })
      saved = staging.size
      return { size: saved }
    },

    async stage(hash: ContentHash | undefined) {
      await staging.settle() // Creates the file of an empty upload.
      await using blob = await openBlobFile(file)
      if (blob?.size !== staging.size) throw new BytesLost()
      return stage(file, hash ?? (await hashBlob(blob)))
    },

    [Symbol.asyncDispose]: () => staging.close().finally(() => staging.release()),
  }
}
