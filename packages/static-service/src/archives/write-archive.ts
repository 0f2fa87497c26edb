import { Readable } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import { pack } from 'tar-stream'
import { ZipFile } from 'yazl'

/** A file to be written, with a name relative to the root of the archive. */
export interface ArchivedFile {
  name: string
  size: number
  /** ISO 8601. */
  updatedAt: string
  content: () => AsyncIterable<Buffer>
}

/**
 * A tar of these files, as a stream. Opens a file only after the consumer has taken all bytes before it.
 * Byte-reproducible: depends on the files only.
 */
export function writeTar(files: AsyncIterable<ArchivedFile>): Readable {
  const packed = pack()
  const write = async () => {
    for await (const { name, size, updatedAt, content } of files) {
      const pax = name.includes('\ufffd') ? { hdrcharset: utf8Names } : undefined
      await pipeline(content, packed.entry({ name, size, mtime: new Date(updatedAt), pax }))
    }
    packed.finalize()
  }
  write().catch((error) => packed.destroy(error))
  return Readable.from(packed)
}

/** The charset of a tar (POSIX.1, pax) whose names have U+FFFD, which otherwise shows that a name is not UTF-8. */
export const utf8Names = 'ISO-IR 10646 2000 UTF-8'

/** As `writeTar`, a zip. */
export function writeZip(files: AsyncIterable<ArchivedFile>): Readable {
  const zip = new ZipFile()
  const output = zip.outputStream as Readable // As the library makes it.
  let current: Readable | undefined
  zip.on('error', (error: Error) => output.destroy(error))
  // The consumer is gone.
  output.on('close', () => current?.destroy())
  const write = async () => {
    for await (const { name, size, updatedAt, content } of files) {
      if (output.destroyed) return
      current = Readable.from(content())
      const safe = name.replace(/^[a-z]:/i, './$&') // A drive letter would make it absolute.
      zip.addReadStream(current, safe, { size, mtime: new Date(updatedAt), mode: 0o100644, compressionLevel: 1 })
      await finished(current)
    }
    zip.end()
  }
  write().catch((error) => output.destroy(error))
  return output
}
