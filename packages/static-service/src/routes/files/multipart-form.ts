import { databaseProblem, HttpError, validationFailed } from '@domains-and-files/http'
import type { Multipart, MultipartFile } from '@fastify/multipart'
import type { FastifyRequest } from 'fastify'
import type { BlobStore } from '../../blobs/blob-store.ts'
import type { StagedBlob } from '../../blobs/staged-blob.ts'
import { fileMissing, invalidPath, malformedUpload, tooManyFiles } from '../../errors.ts'
import type { Arrival, SizeMeter } from './store-files.ts'

/** What a form may hold: at most one field `path`, and files in parts named `field`. */
export interface FormRules {
  field: string
  maxFiles: number
  /** The path of a file, by its name and the field `path`. */
  pathOf: (name: string, path: string | undefined) => string
  /**
   * Called when a file part begins, with its file name and the field `path` if that came before. Throws to refuse the
   * file before its bytes arrive.
   */
  admit: (name: string, path: string | undefined) => Promise<SizeMeter>
}

/** Disposing of it removes the blobs that no stored file refers to. */
interface ReceivedForm extends AsyncDisposable {
  arrivals: Arrival[]
}

/**
 * Reads a form, its fields in any order, its files into drafts in bounded memory. On failure, or when the client
 * disconnects, nothing stays behind; the rest of the body is discarded so that the client can read the response.
 * @throws {HttpError} `malformed_body`, `validation_failed`, `invalid_path`, `file_missing`, `too_many_files`,
 *   `insufficient_storage`, or what `admit`, its meter and `pathOf` throw.
 */
export async function readForm(
  request: FastifyRequest,
  store: BlobStore,
  rules: FormRules,
): Promise<ReceivedForm> {
  const form = new FormReader(store, rules)
  try {
    for await (const part of request.parts(parserOptions(rules))) await form.read(part)
    return { arrivals: form.end(), [Symbol.asyncDispose]: () => form.discard() }
  } catch (error) {
    await form.discard()
    request.raw.unpipe()
    request.raw.resume()
    throw nameFailure(error, rules)
  }
}

class FormReader {
  readonly #files: { name: string; draft: StagedBlob }[] = []
  /** Undefined also where the form has none. */
  #path: string | undefined
  readonly #store: BlobStore
  readonly #rules: FormRules
  /** Names of unknown or repeated parts. */
  readonly #strays: string[] = []
  #refusedBytes = 0
  #hasPath = false

  constructor(store: BlobStore, rules: FormRules) {
    this.#store = store
    this.#rules = rules
  }

  async discard(): Promise<void> {
    await Promise.all(this.#files.map(({ draft }) => draft[Symbol.asyncDispose]()))
  }

  async read(part: Multipart): Promise<void> {
    if (part.type === 'field') return this.#readField(part)
    if (part.fieldname === this.#rules.field) return this.#readFile(part)
    this.#strays.push(part.fieldname)
    for await (const chunk of part.file) this.#limitRefused(chunk.length)
  }

  /** @throws {HttpError} `file_missing`, `validation_failed`, or what `pathOf` throws. */
  end(): Arrival[] {
    const { field, pathOf } = this.#rules
    // Browsers send a nameless empty file where none was chosen.
    if (this.#files.every(({ name, draft }) => name === '' && draft.size === 0))
      throw fileMissing(field)
    if (this.#strays.length > 0) throw this.#strayParts()
    return this.#files.map(({ name, draft }) => ({ path: pathOf(name, this.#path), draft }))
  }

  async #readFile(part: MultipartFile) {
    const { maxFiles, admit } = this.#rules
    if (this.#files.length === maxFiles) throw tooManyFiles(maxFiles)
    const name = readFileName(part.filename)
    const count = await admit(name, this.#path)
    const draft = this.#store.draft()
    this.#files.push({ name, draft })
    for await (const chunk of part.file) {
      const isChecked = count(chunk.length)
      if (isChecked) await isChecked
      this.#limitRefused(chunk.length)
      await draft.write(chunk)
    }
    await draft.seal()
  }

  #readField(part: Extract<Multipart, { type: 'field' }>) {
    if (part.fieldname !== 'path' || this.#hasPath) {
      this.#strays.push(part.fieldname)
      return
    }
    if (part.valueTruncated) throw invalidPath('it is too long')
    this.#hasPath = true
    // An empty field counts as absent: HTML forms always send it.
    this.#path = readText(String(part.value)) || undefined
  }

  // A form with an unknown part is rejected: reads on for further faults, up to a limit.
  #limitRefused(bytes: number) {
    if (this.#strays.length === 0) return
    this.#refusedBytes += bytes
    if (this.#refusedBytes > maxRefusedBytes) throw this.#strayParts()
  }

  #strayParts() {
    return validationFailed(
      this.#strays.map((name) => ({
        path: `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`,
        message: name === 'path' ? 'must be sent once' : 'is not known here',
      })),
    )
  }
}

// The parser replaces bytes that are not UTF-8 with this character.
function readText(text: string | undefined): string {
  if (text?.includes('\ufffd')) throw invalidPath('it is not valid UTF-8')
  return text ?? ''
}

// A form writes a quote and the ends of lines in a file name as these, and no other character (WHATWG HTML, 4.10.21.8).
const readFileName = (text: string | undefined) =>
  readText(text).replace(/%(?:22|0D|0A)/g, decodeURIComponent)

const parserOptions = ({ maxFiles }: FormRules) => ({
  // An uploaded directory has relative paths in its file names.
  preservePath: true,
  throwFileSizeLimit: false,
  limits: {
    fileSize: Number.POSITIVE_INFINITY, // `admit` limits it
    files: maxFiles + maxStrays,
    fields: maxStrays,
    fieldSize: 8192,
    parts: maxFiles + maxStrays,
  },
})

// Parts, and bytes of files, that are read only so that one response can name every fault.
const maxStrays = 8
const maxRefusedBytes = 1_048_576

// The parser's own limit for the headers of a part, and the fields.
const maxPartBytes = 81_920 + 8192

/** Bytes that a valid form may have beside its files. */
export const formOverhead = (maxFiles: number) => (maxFiles + maxStrays) * maxPartBytes

function nameFailure(error: unknown, { maxFiles }: FormRules): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (/^FST_(?:FILES|PARTS|FIELDS)_LIMIT$/.test(code)) return tooManyFiles(maxFiles)
  const isOurs = error instanceof HttpError || error instanceof TypeError
  const isDisk = error instanceof Error && 'syscall' in error
  return isOurs || isDisk || databaseProblem(error) ? error : malformedUpload(error)
}
