import {
  type App,
  answers,
  databaseProblem,
  HttpError,
  operations,
  pointerTo,
  refuseContentCoding,
  unsupportedCoding,
  validationFailed,
} from '@domains-and-files/http'
import multipart, { type Multipart } from '@fastify/multipart'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { StagedBlob } from '../../blobs/staging-file.ts'
import * as errors from '../../errors.ts'
import { join, readDirectory, readPath, readWrittenPath } from '../../files/file-path.ts'
import { requirePath } from '../callers.ts'
import { FileRecord, file, fileTooLarge, storedAnswers, uploadConditions, uploadErrors } from '../schemas.ts'
import {
  type Arrival,
  checkDistinct,
  conditionsOf,
  type FileDependencies,
  sendStored,
  stage,
  storeFiles,
} from './store-files.ts'

const binary = { type: 'string', format: 'binary' } as const

const formErrors = [
  ...uploadErrors,
  errors.reservedPath('tree'),
  errors.fileNotFound(file.path),
  errors.malformedUpload(undefined),
  errors.notMultipart(),
  unsupportedCoding(),
]

const routes = operations({
  shared: { access: 'editor', folders: 'handler', tags: ['files'] },
  uploadFile: {
    summary: 'Store one file',
    description:
      'Replaces an existing file; `If-None-Match: *` forbids that, `If-Match` allows it for one state of the file only. After the response the bytes are durable; a failed upload leaves nothing behind.',
    requestHeaders: uploadConditions,
    errors: [...formErrors, fileTooLarge, errors.fileMissing('file'), errors.tooManyFiles(1)],
    ...storedAnswers,
    consumes: ['multipart/form-data'],
    body: z.any().meta({
      type: 'object',
      examples: [{ file: 'Hello, files\n', path: 'notes/' }],
      required: ['file'],
      properties: {
        file: binary,
        path: {
          type: 'string',
          examples: ['notes/'],
          description: 'whole path, or a directory with a trailing slash; default: the file name',
        },
      },
    }),
  },
  uploadFiles: {
    summary: 'Store several files, all or none',
    description:
      'A file name may contain a relative directory, as browsers send it for a folder. Replaces existing files; `If-None-Match: *` forbids that, and the refusal names all that exist in `paths`.',
    requestHeaders: uploadConditions,
    errors: [
      ...formErrors,
      fileTooLarge,
      errors.fileMissing('files'),
      errors.tooManyFiles(100),
      errors.duplicatePath(file.path),
    ],
    consumes: ['multipart/form-data'],
    body: z.any().meta({
      type: 'object',
      examples: [{ files: ['Hello, files\n'], path: 'notes' }],
      required: ['files'],
      properties: {
        files: { type: 'array', items: binary },
        path: { type: 'string', description: 'directory of all files', examples: ['notes'] },
      },
    }),
    ...answers(201, 'The records in the order sent', z.object({ files: z.array(FileRecord) })),
  },
})

export async function registerUploadRoutes(app: App, dependencies: FileDependencies) {
  await app.register(async (scope) => {
    // Encapsulated: no other route accepts multipart bodies.
    await scope.register(multipart)
    scope.addHook('onRequest', async ({ headers }) => {
      const type = headers['content-type'] ?? ''
      if (!/^multipart\/form-data(?:\s*;|$)/i.test(type)) throw errors.notMultipart()
      refuseContentCoding(headers)
    })
    const { maxBatchFiles: maxFiles } = dependencies
    const single = { field: 'file', maxFiles: 1, pathOf: singlePath }
    scope.post('/api/files/upload', routes.uploadFile, async (request, reply) =>
      sendStored(reply, await storeForm(request, single, dependencies)),
    )
    const batch = { field: 'files', maxFiles, pathOf: batchPath }
    scope.post('/api/files/upload/batch', routes.uploadFiles, async (request) => {
      const { records: files } = await storeForm(request, batch, dependencies)
      return { files }
    })
  })
}

/** What a form may hold: at most one field `path`, and files in parts named `field`. */
interface FormRules {
  field: string
  maxFiles: number
  /** The path of a file, by its name and the field `path`. */
  pathOf: (name: string, path: string) => string
}

function singlePath(name: string, path: string): string {
  if (path === '') return readPath(name)
  return path.endsWith('/') ? batchPath(name, path) : readWrittenPath(path)
}

const batchPath = (name: string, path: string) => readPath(join(readDirectory(path), name))

/**
 * Stores the files of a form, all or none. On failure, or when the client disconnects, nothing stays behind.
 * @throws {HttpError} `malformed_body`, `validation_failed`, `file_missing`, `too_many_files`, or what `pathOf`, the limits
 *   and `storeFiles` throw.
 */
export async function storeForm(request: FastifyRequest, rules: FormRules, dependencies: FileDependencies) {
  const { maxFiles } = rules
  // Rejects without reading if the length proves that one of the files is too large.
  const length = Number(request.headers['content-length'] ?? 0)
  const overhead = (maxFiles + maxStrays) * maxPartBytes
  dependencies.limits.checkSize((length - overhead) / maxFiles)
  // Removes the blobs that no stored file refers to.
  await using drafts = new AsyncDisposableStack()
  const form = new UploadForm({ ...dependencies, drafts, request, rules })
  return await storeFiles(request, await form.receive(), dependencies)
}

interface FormDependencies extends FileDependencies {
  request: FastifyRequest
  rules: FormRules
  drafts: AsyncDisposableStack
}

/** A form that arrives, its fields in any order, its files in bounded memory. */
class UploadForm {
  readonly #dependencies: FormDependencies
  /** `path`: if it was known before the bytes arrived. */
  readonly #files: { name: string; path: string | undefined; draft: StagedBlob }[] = []
  /** Undefined until it has arrived. An empty field counts as absent: HTML forms always send it. */
  #path: string | undefined
  /** Names of unknown or repeated parts. */
  readonly #strays: string[] = []
  #refusedBytes = 0

  constructor(dependencies: FormDependencies) {
    this.#dependencies = dependencies
  }

  async receive(): Promise<Arrival[]> {
    const { request, rules } = this.#dependencies
    const { maxFiles, field } = rules
    const maxParts = maxFiles + maxStrays
    const limits = { ...partLimits, files: maxParts, parts: maxParts }
    // An uploaded directory has relative paths in its file names.
    const options = { preservePath: true, limits }
    try {
      for await (const part of request.parts(options)) {
        const { type, fieldname } = part
        if (!/^(?:7bit|8bit|binary)$/.test(part.encoding)) throw encodedPart(fieldname)
        if (type === 'file' && fieldname === field) await this.#readFile(part)
        else if (type === 'field' && fieldname === 'path' && this.#path === undefined) {
          if (part.valueTruncated) throw errors.invalidPath('it is too long')
          this.#path = readText(String(part.value))
        } else {
          this.#strays.push(fieldname)
          if (type === 'file') for await (const { length } of part.file) this.#limitRefused(length)
        }
      }
      return this.#arrivals()
    } catch (error) {
      // Discards the rest of the body, so that the client can read the response.
      request.raw.unpipe()
      request.raw.resume()
      throw nameFailure(error, maxFiles)
    }
  }

  #arrivals(): Arrival[] {
    const { field, pathOf } = this.#dependencies.rules
    // Browsers send a nameless empty file where none was chosen.
    if (this.#files.every(({ name, draft }) => name === '' && draft.size === 0)) throw errors.fileMissing(field)
    if (this.#strays.length > 0) throw this.#strayParts()
    const arrivals = this.#files.map(({ name, path = pathOf(name, this.#path ?? ''), draft }) => ({ path, draft }))
    checkDistinct(arrivals.map(({ path }) => path))
    return arrivals
  }

  async #readFile({ filename, file }: Extract<Multipart, { type: 'file' }>) {
    const { store, limits, drafts, rules } = this.#dependencies
    const { maxFiles, pathOf } = rules
    if (this.#files.length === maxFiles) throw errors.tooManyFiles(maxFiles)
    // A form writes a quote and the ends of lines in a name as these, and no other character (WHATWG HTML, 4.10.21.8).
    const name = readText(filename).replace(/%(?:22|0D|0A)/g, decodeURIComponent)
    const path = this.#path && name !== '' ? pathOf(name, this.#path) : undefined
    if (path !== undefined) await this.#admit(path)
    const draft = drafts.use(store.draft())
    this.#files.push({ name, path, draft })
    await stage(file, draft, {
      limits,
      path: maxFiles === 1 ? path : undefined,
      onChunk: this.#strays.length > 0 ? ({ length }) => this.#limitRefused(length) : undefined,
    })
  }

  /** Refuses a file before its bytes arrive. Without a look-up if they are few: the transaction makes it in any case. */
  async #admit(path: string) {
    const { request, rules, limits } = this.#dependencies
    const { headers, caller } = request
    requirePath(caller, path)
    if (this.#files.some((other) => other.path === path)) throw errors.duplicatePath(path)
    if (Number(headers['content-length']) <= smallBody) return
    // For several files, the transaction checks conditions, to name all that fail, and the quota.
    await limits.checkTarget(path, rules.maxFiles === 1 ? conditionsOf(headers) : {})
  }

  // A form with an unknown part is rejected: reads on for further faults, up to a limit.
  #limitRefused(bytes: number) {
    this.#refusedBytes += bytes
    if (this.#refusedBytes > maxRefusedBytes) throw this.#strayParts()
  }

  #strayParts() {
    return validationFailed(
      this.#strays.map((name) => ({
        path: pointerTo('', [name]),
        message: name === 'path' ? 'must be sent once, without a file name' : 'is not known here',
      })),
    )
  }
}

// The parser replaces bytes that are not UTF-8 with this character.
function readText(text: string | undefined): string {
  if (text?.includes('\ufffd')) throw errors.invalidPath('it is not valid UTF-8')
  return text ?? ''
}

// RFC 7578, 4.7.
const encodedPart = (name: string) =>
  validationFailed([{ path: pointerTo('', [name]), message: 'must be sent without Content-Transfer-Encoding' }])

// Parts, and bytes of files, that are read only so that one response can name every fault.
const maxStrays = 8
const maxRefusedBytes = 1_048_576

// Of the headers of a part, with the longest path many times over. One byte of them may take ten until they are complete.
const headerSize = 16_384
const fieldSize = 8192

// `UploadLimits` limits the files.
const partLimits = { fileSize: Number.POSITIVE_INFINITY, fields: maxStrays, fieldSize, headerSize }

const maxPartBytes = headerSize + fieldSize

const smallBody = 65_536

function nameFailure(error: unknown, maxFiles: number): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (/^FST_(?:FILES|PARTS|FIELDS)_LIMIT$/.test(code)) return errors.tooManyFiles(maxFiles)
  const isOurs = error instanceof HttpError || error instanceof TypeError
  const isDisk = error instanceof Error && 'syscall' in error
  return isOurs || isDisk || databaseProblem(error) ? error : errors.malformedUpload(error)
}
