import { HttpError } from '@domains-and-files/http'

// Every failure that a caller of this service can meet, by name. The codes are the contract; the words may change.

export const invalidPath = (why: string) =>
  new HttpError(400, 'invalid_path', `This cannot be a path: ${why}`)

export const reservedPath = (segment: string) =>
  new HttpError(400, 'reserved_path', `No path can begin with ${segment}: the API uses that name`)

export const duplicatePath = (path: string) =>
  new HttpError(400, 'duplicate_path', `Two parts would both be stored at ${path}`)

export const fileMissing = (field: string) =>
  new HttpError(400, 'file_missing', `Send a file in the part ${field}`)

export const malformedUpload = (cause: unknown) =>
  new HttpError(
    400,
    'malformed_body',
    'The body is not whole and well-formed multipart/form-data: send it again',
    { cause },
  )

export const fileNotFound = (path: string) =>
  new HttpError(404, 'file_not_found', `There is no file at ${path}`)

export const directoryNotFound = (path: string) =>
  new HttpError(404, 'directory_not_found', `There is no directory at ${path}`)

export const noVersion = () =>
  new HttpError(404, 'no_version', 'No version has been recorded yet: POST one to /api/versions/')

export const pathConflict = (path: string) =>
  new HttpError(
    409,
    'path_conflict',
    `${path} would be both a file and a directory: delete one or choose another path`,
  )

export const versionExists = (version: string) =>
  new HttpError(409, 'version_exists', `Version ${version} has been recorded already`)

export const preconditionFailed = (path: string) =>
  new HttpError(
    412,
    'precondition_failed',
    `What is at ${path} is not what the request's conditions (If-Match and the like) ask for: read it again`,
  )

export const fileTooLarge = (max: number) =>
  new HttpError(413, 'file_too_large', `A file may have at most ${max} bytes`)

export const tooManyFiles = (max: number) =>
  new HttpError(413, 'too_many_files', `Too many parts: at most ${max} of files, and one path`)

export const notMultipart = () =>
  new HttpError(415, 'unsupported_media_type', 'Files are sent as multipart/form-data')

export const catalogLocked = (cause: unknown) =>
  new HttpError(
    503,
    'unavailable',
    'Another process has locked the database of this service: nothing was changed; try again',
    { cause, headers: { 'retry-after': '5' } },
  )

export const rangeNotSatisfiable = (size: number) =>
  new HttpError(
    416,
    'range_not_satisfiable',
    `The file has ${size} bytes: none of them is in the range`,
    { headers: { 'accept-ranges': 'bytes', 'content-range': `bytes */${size}` } },
  )

export const insufficientStorage = (cause?: unknown) =>
  new HttpError(
    507,
    'insufficient_storage',
    'The disk of this service is full: nothing was stored; delete files or try again later',
    { cause },
  )

export const quotaExceeded = (quota: number) =>
  new HttpError(
    507,
    'quota_exceeded',
    `All files together may have ${quota} bytes: nothing was stored; delete files first`,
  )
