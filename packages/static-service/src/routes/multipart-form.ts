import { HttpError, validationFailed } from '@domains-and-files/http'
import type { Multipart, MultipartFile } from '@fastify/multipart'
import type { FastifyRequest } from 'fastify'
import type { BlobStore } from '../blobs/blob-store.ts'
import type { StagedBlob } from '../blobs/staged-blob.ts'
import {
  fileMissing,
  fileTooLarge,
  invalidPath,
  malformedUpload,
  quotaExceeded,
  tooManyFiles,
} from '../errors.ts'

/** What a form may hold: one field `path`, and files in parts of this name. */
export interface FormRules {
  field: string
  maxFiles: number
  maxBytes: number
  /** Where it is smaller than `maxBytes`, it is what a file is too large for. */
  quotaBytes: number | undefined
  /** How many bytes of one file may stay in memory; together they never are many. */
  room: number
}

/**
 * An upload that has arrived whole. Its drafts go when the block that read it ends, but those that were kept and are
 * referred to by then.
 */
export class MultipartForm implements AsyncDisposable {
  readonly files: { name: string; draft: StagedBlob }[] = []
  path: string | undefined
  /** How many bytes more may stay in memory. */
  room = 1_048_576

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.files.map(({ draft }) => draft[Symbol.asyncDispose]()))
  }
}

/**
 * Reads a form to its end, its fields in any order, its files into drafts, whatever their size in bounded memory.
 * Leaves nothing behind when it fails, or when the sender goes away; what is still on its way then is read and dropped,
 * so that the sender gets to read the answer.
 * @throws {HttpError} `malformed_body`, `validation_failed`, `invalid_path`, `file_missing`, `file_too_large`,
 *   `too_many_files`, `quota_exceeded` or `insufficient_storage`.
 */
export async function readForm(
  request: FastifyRequest,
  store: BlobStore,
  rules: FormRules,
): Promise<MultipartForm> {
  const form = new MultipartForm()
  const stray: string[] = []
  try {
    for await (const part of request.parts(parserOptions(rules))) {
      await readPart(part, { form, stray, store, rules })
    }
  } catch (error) {
    await form[Symbol.asyncDispose]()
    request.raw.unpipe()
    request.raw.resume()
    throw nameFailure(error, rules)
  }
  const fault = judge(form, stray, rules)
  if (!fault) return form
  await form[Symbol.asyncDispose]()
  throw fault
}

interface Reading {
  form: MultipartForm
  stray: string[]
  store: BlobStore
  rules: FormRules
}

async function readPart(part: Multipart, { form, stray, store, rules }: Reading) {
  if (part.type === 'file' && part.fieldname === rules.field) {
    if (form.files.length === rules.maxFiles) throw tooManyFiles(rules.maxFiles)
    const name = readText(part.filename)
    const draft = store.draft(Math.min(rules.room, form.room))
    form.files.push({ name, draft })
    await receive(part.file, draft, rules)
    if (draft.isSmall) form.room -= draft.size
    return
  }
  if (part.type === 'file') {
    stray.push(part.fieldname)
    for await (const _ignored of part.file);
    return
  }
  if (part.fieldname !== 'path' || form.path !== undefined) {
    stray.push(part.fieldname)
    return
  }
  if (part.valueTruncated) throw invalidPath('it is too long')
  form.path = readText(String(part.value))
}

async function receive(file: MultipartFile['file'], draft: StagedBlob, rules: FormRules) {
  const { maxBytes, quotaBytes = maxBytes } = rules
  for await (const chunk of file) await draft.write(chunk)
  // Only now: the parser ends a file that is too large as if it were whole, and says so at its end.
  if (file.truncated) {
    throw quotaBytes < maxBytes ? quotaExceeded(quotaBytes) : fileTooLarge(maxBytes)
  }
  await draft.seal()
}

function judge(form: MultipartForm, stray: string[], { field }: FormRules): HttpError | undefined {
  // A browser sends a nameless empty file where none was chosen.
  const isNothing = form.files.every(({ name, draft }) => name === '' && draft.size === 0)
  if (isNothing) return fileMissing(field)
  if (stray.length === 0) return undefined
  return validationFailed(
    stray.map((name) => ({
      path: `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`,
      message: name === 'path' ? 'must be sent once' : 'is not known here',
    })),
  )
}

// Bytes that were not UTF-8 have become this character on the way through the parser.
function readText(text: string | undefined): string {
  if (text?.includes('\ufffd')) throw invalidPath('it is not valid UTF-8')
  return text ?? ''
}

const parserOptions = ({ maxFiles, maxBytes, quotaBytes = maxBytes }: FormRules) => ({
  // A folder that is sent whole has its directories in the names of its files.
  preservePath: true,
  throwFileSizeLimit: false,
  limits: {
    fileSize: Math.min(maxBytes, quotaBytes),
    files: maxFiles + mostStrays,
    fields: mostStrays,
    fieldSize: 8192,
    parts: maxFiles + mostStrays,
  },
})

// Parts that are read, so that they can be named, though they should not be there.
const mostStrays = 8

function nameFailure(error: unknown, { maxFiles }: FormRules): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (/^FST_(?:FILES|PARTS|FIELDS)_LIMIT$/.test(code)) return tooManyFiles(maxFiles)
  const isOurs = error instanceof HttpError || error instanceof TypeError
  const isDisk = error instanceof Error && 'syscall' in error
  return isOurs || isDisk ? error : malformedUpload(error)
}
