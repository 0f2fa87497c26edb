import { isUtf8 } from 'node:buffer'
import { open } from 'node:fs/promises'
import { pipeline, Readable } from 'node:stream'
import { constants, crc32, createGunzip, createZstdDecompress, type Gunzip, type ZstdDecompress } from 'node:zlib'
import { HttpError } from '@domains-and-files/http'
import { extract, type Header } from 'tar-stream'
import { type Entry, openPromise, type ZipFile } from 'yauzl'
import { invalidArchive, treeTooLarge } from '../errors.ts'
import { utf8Names } from './write-archive.ts'

/** A member of an archive. Read its bytes before advancing to the next member. */
export interface ArchiveEntry {
  /** Unchanged from the archive. */
  name: string
  /** `other`: links, devices, sparse files and all other special entries. */
  kind: 'file' | 'directory' | 'other'
  /** Size in bytes that the archive declares. */
  size: number
  content: AsyncIterable<Buffer>
}

export interface Body {
  /** The first bytes, at least 512 where the body has them. */
  head: Buffer
  chunks: AsyncIterable<Buffer>
}

export async function peek(body: AsyncIterable<Buffer>): Promise<Body> {
  const rest = body[Symbol.asyncIterator]()
  let head = Buffer.alloc(0)
  while (head.length < blockBytes) {
    const { done, value } = await rest.next()
    if (done) break
    head = Buffer.concat([head, value])
  }
  async function* all() {
    yield head
    yield* { [Symbol.asyncIterator]: () => rest }
  }
  return { head, chunks: all() }
}

/** The type of an archive by its first bytes: tar, which has no signature, where they are of no other. */
function archiveTypeOf(head: Buffer) {
  const magic = head.toString('latin1', 0, 4)
  if (magic.startsWith('\x1f\x8b')) return 'gzip'
  // A frame, or one to skip, which parallel compressors write first (RFC 8878, 3.1).
  const isSkippable = magic.endsWith('*M\x18') && (head[0] ?? 0) >> 4 === 5
  if (magic === '\x28\xb5\x2f\xfd' || isSkippable) return 'zstd'
  // The second signature begins an archive without entries.
  if (magic === 'PK\x03\x04' || magic === 'PK\x05\x06') return 'zip'
  return 'tar'
}

/** Bytes of memory that decompressing a body takes: with zstd its window, and the state of the decoder. */
export const decoderBytes = ({ head }: Body) => (archiveTypeOf(head) === 'zstd' ? 9_437_184 : 0)

/** Whether a body begins as a JSON object, perhaps after a byte order mark; the first block of a tar has zeros. */
export const isJsonObject = ({ head }: Body) => /^\s*\{/.test(head.toString()) && !head.includes(0)

interface ReadOptions {
  /** Maximum bytes of all files. */
  maxBytes: number
  maxFiles: number
  /** Writes all bytes to a file and returns its path: a zip has its directory at the end. */
  spool: (chunks: AsyncIterable<Buffer>) => Promise<string>
}

/**
 * The entries of an archive in their order, as a stream in bounded memory.
 * @throws {HttpError} `invalid_archive` if it is truncated, damaged or of unknown type; `tree_too_large`.
 */
export async function* readArchive(
  { head, chunks }: Body,
  { spool, ...limits }: ReadOptions,
): AsyncGenerator<ArchiveEntry> {
  const type = archiveTypeOf(head)
  if (type === 'zip') return yield* readZip(await spool(limited(chunks, limits)))
  if (type === 'tar') return yield* readTar(limited(chunks, limits), 'it is no tar, zip, gzip or zstd')
  const decoder = type === 'gzip' ? createGunzip() : createZstdDecompress(zstdOptions)
  yield* readTar(limited(decompress(chunks, decoder), limits), `the ${type} holds no tar`)
}

// Rejects a decompression bomb while it streams.
async function* limited(chunks: AsyncIterable<Buffer>, { maxBytes, maxFiles }: Omit<ReadOptions, 'spool'>) {
  let left = maxBytes + overheadBytes + maxFiles * entryBytes
  for await (const chunk of chunks) {
    left -= chunk.length
    if (left < 0) throw treeTooLarge(`${maxBytes} bytes`)
    yield chunk
  }
}

// The window, which the archive declares, is memory of the decoder: 8 MiB, as RFC 8878, 3.1.1.1.2 recommends, fits all levels
// of zstd without --long and --ultra.
const zstdOptions = { params: { [constants.ZSTD_d_windowLogMax]: 23 } }
const windowTooLarge = 'the zstd needs a window of more than 8 MiB: compress it without --long and --ultra'

// What the format of an archive may add: the headers of its entries, and the padding of the last block.
const overheadBytes = 1_048_576
const entryBytes = 8192

async function* decompress(chunks: AsyncIterable<Buffer>, decoder: Gunzip | ZstdDecompress) {
  // Errors of both reach the loop below.
  const tail = { bytes: 0, zeros: 0 }
  pipeline(Readable.from(measureZeros(chunks, tail)), decoder, () => undefined)
  try {
    for await (const chunk of decoder) yield chunk as Buffer // Without an encoding, it is bytes.
    // Node ignores what follows the last frame of a zstd; zeros may pad it, as in `cutPadding`.
    if (tail.bytes - tail.zeros > decoder.bytesWritten) throw invalidArchive('more than zeros follow its end')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw code === 'ZSTD_error_frameParameter_windowTooLarge' ? invalidArchive(windowTooLarge) : faultOf(error)
  }
}

/** `otherwise`: the fault of bytes that do not begin as a tar. */
async function* readTar(chunks: AsyncIterable<Buffer>, otherwise: string): AsyncGenerator<ArchiveEntry> {
  const unpacked = extract({ allowUnknownFormat: true } as never) // Missing in its types: accepts tars older than POSIX.
  const tail = { bytes: 0, zeros: 0 }
  const source = Readable.from(measureZeros(chunks, tail))
  source.on('error', (error) => unpacked.destroy(error))
  unpacked.on('close', () => source.destroy())
  source.pipe(unpacked)
  let end = 0
  try {
    for await (const entry of unpacked) {
      const { name, size, pax } = entry.header
      demandUtf8(name, Object.values(pax ?? {}).includes(utf8Names))
      // The library yields null for a malformed binary size, and would wait for ever.
      if (!Number.isFinite(size)) throw invalidArchive('its size is malformed', name)
      const kind = kindOf(entry.header)
      yield { name, kind, size, content: withFaults(entry as AsyncIterable<Buffer>, name) } // No encoding: bytes.
      entry.resume()
      const blocks = kind === 'directory' ? 0 : Math.ceil(size / blockBytes)
      end = entry.offset + (1 + blocks) * blockBytes
    }
  } catch (error) {
    throw end === 0 && !(error instanceof HttpError) ? invalidArchive(otherwise) : faultOf(error)
  }
  // A tar ends in two blocks of zeros (POSIX.1, pax, "ustar Interchange Format"); the library does not check that.
  if (Math.min(tail.bytes - end, tail.zeros) < 2 * blockBytes) throw invalidArchive('the tar ends too early')
}

// The libraries replace bytes that are not UTF-8 with this character. `isUtf8Name`: it is in the archive.
function demandUtf8(name: string, isUtf8Name: boolean) {
  if (name.includes('\ufffd') && !isUtf8Name) throw invalidArchive('its name is not valid UTF-8', name)
}

function kindOf({ name, type, size, pax }: Header): ArchiveEntry['kind'] {
  // Tars older than POSIX have no type of directories.
  if (type === 'directory' || (type === 'file' && size === 0 && name.endsWith('/'))) return 'directory'
  const isSparse = Object.keys(pax ?? {}).some((key) => key.startsWith('GNU.sparse.'))
  return (type === 'file' || type === 'contiguous-file') && !isSparse ? 'file' : 'other'
}

async function* measureZeros(chunks: AsyncIterable<Buffer>, tail: { bytes: number; zeros: number }) {
  for await (const chunk of chunks) {
    let zeros = 0
    while (zeros < chunk.length && chunk[chunk.length - 1 - zeros] === 0) zeros += 1
    tail.bytes += chunk.length
    tail.zeros = zeros === chunk.length ? tail.zeros + zeros : zeros
    yield chunk
  }
}

const blockBytes = 512

async function* readZip(file: string): AsyncGenerator<ArchiveEntry> {
  let zip: ZipFile | undefined
  await cutPadding(file)
  try {
    zip = await openPromise(file, { strictFileNames: true })
    let left = Number(zip.readEntryCursor) // The bytes before the directory.
    for await (const entry of zip.eachEntry()) {
      const { uncompressedSize: size, fileNameRaw } = entry
      const name = nameOfZip(entry)
      demandUtf8(name, fileNameRaw.includes(name))
      left -= entry.compressedSize
      if (left < 0) throw invalidArchive('it shares bytes with another entry', name) // The mark of a bomb.
      yield { name, kind: kindOfZip(entry), size, content: readZipEntry(zip, entry) }
    }
    await refuseMoreEntries(file, Number(zip.readEntryCursor))
  } catch (error) {
    throw faultOf(error)
  } finally {
    zip?.close()
  }
}

// Names not declared as UTF-8 (by flag, or field 0x7075) are in code page 437; on Unix, zip writes those of the file system.
function nameOfZip({ fileName, fileNameRaw, generalPurposeBitFlag, extraFields }: Entry): string {
  const isDeclared = (generalPurposeBitFlag & 0x800) !== 0 || extraFields.some(({ id }) => id === 0x7075)
  return isDeclared || !isUtf8(fileNameRaw) ? fileName : fileNameRaw.toString()
}

// bsdtar fills its last block with zeros, also after the end record of a zip (APPNOTE.TXT, 4.3.16).
async function cutPadding(file: string): Promise<void> {
  await using handle = await open(file, 'r+')
  const { size } = await handle.stat()
  const length = Math.min(size, maxEndBytes)
  const { buffer: tail } = await handle.read(Buffer.alloc(length), 0, length, size - length)
  const at = tail.lastIndexOf('PK\x05\x06')
  if (at === -1 || at + endBytes > length) return
  const end = at + endBytes + tail.readUInt16LE(at + endBytes - 2)
  if (end < length && tail.subarray(end).every((byte) => byte === 0)) await handle.truncate(size - length + end)
}

// The library believes the number of entries, which writers without Zip64 give modulo 65,536. `end`: offset after the last.
async function refuseMoreEntries(file: string, end: number): Promise<void> {
  await using handle = await open(file)
  const { buffer: next } = await handle.read(Buffer.alloc(4), 0, 4, end)
  const isEnd = ['PK\x05\x06', 'PK\x06\x06'].includes(next.toString('latin1')) // The second is that of Zip64.
  if (!isEnd) throw invalidArchive('it has more entries than it counts')
}

const endBytes = 22
// With the longest comment, and a block of bsdtar.
const maxEndBytes = endBytes + 65_535 + 10_240

async function* readZipEntry(zip: ZipFile, entry: Entry): AsyncGenerator<Buffer> {
  let sum = 0
  for await (const chunk of withFaults(zip.openReadStreamPromise(entry), entry.fileName)) {
    sum = crc32(chunk, sum)
    yield chunk
  }
  // The library checks only the size.
  if (sum !== entry.crc32) throw invalidArchive('its checksum is wrong', entry.fileName)
}

// The type of the file is in the upper half where the archive was made on Unix; elsewhere that is zero.
function kindOfZip({ fileName, externalFileAttributes }: Entry): ArchiveEntry['kind'] {
  const type = (externalFileAttributes >>> 16) & 0o170000
  if (fileName.endsWith('/')) return 'directory'
  return type === 0 || type === 0o100000 ? 'file' : 'other'
}

async function* withFaults(chunks: AsyncIterable<Buffer> | Promise<AsyncIterable<Buffer>>, name: string) {
  try {
    yield* await chunks
  } catch (error) {
    throw faultOf(error, name)
  }
}

/** Maps library errors to `invalid_archive`; an `HttpError` has only passed through the library. */
const faultOf = (error: unknown, name?: string) =>
  error instanceof HttpError ? error : invalidArchive(error instanceof Error ? error.message : String(error), name)
