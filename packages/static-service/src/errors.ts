import { forbidden, HttpError, unavailable } from '@domains-and-files/http'

// Every error response of this service. The code is the contract; the detail may be reworded.

export const invalidPath = (reason: string, path = '') =>
  new HttpError(400, 'invalid_path', `Invalid path${path && ` ${quotePath(path)}`}: ${reason}`)

export const undecodableUrl = () => invalidPath('it is not valid percent-encoded UTF-8')

// Among a thousand paths of a request it says which one. What a display would obey is escaped.
const quotePath = (path: string) =>
  JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path).replace(
    unprintable,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

const unprintable = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu

export const reservedPath = (segment: string) =>
  new HttpError(400, 'reserved_path', `A path cannot begin with ${segment}: reserved for the API`)

export const duplicatePath = (path: string) =>
  new HttpError(400, 'duplicate_path', `The request names this path twice: ${path}`)

export const forgetNeedsAdmin = () => forbidden('Forgetting files needs the role admin')

/** An archive, or another body of a tree, that cannot be stored as it is; names the entry. */
export const invalidArchive = (reason: string, entry?: string) =>
  new HttpError(
    400,
    'invalid_archive',
    `Invalid archive${entry === undefined ? '' : `, entry ${quotePath(entry)}`}: ${reason}; nothing changed`,
  )

export const fileMissing = (field: string) => new HttpError(400, 'file_missing', `Send a file in the part ${field}`)

export const malformedUpload = (cause: unknown) =>
  new HttpError(400, 'malformed_body', 'The body is truncated or not well-formed multipart/form-data: send it again', {
    cause,
  })

/** Also for a malformed field. */
export const digestMismatch = (field: string) =>
  new HttpError(400, 'digest_mismatch', `Nothing stored: the body does not match ${field}`)

export const partialPut = () =>
  new HttpError(400, 'malformed_request', 'PUT replaces the whole file: send it without Content-Range')

// Names up to 1,000 paths.
const withPaths = (status: number, code: string, detail: string, paths: string[]) =>
  new HttpError(status, code, detail, { members: { paths: paths.slice(0, 1000) } })

const firstOf = ([path = '', ...others]: string[]) => (others.length > 0 ? `${path} and ${others.length} more` : path)

export const fileNotFound = (...paths: string[]) =>
  withPaths(404, 'file_not_found', `No file at ${firstOf(paths)}`, paths)

/** A path sent with `%2F`, which is not a path separator: each file has one URL. */
export const encodedSlash = (path: string) =>
  new HttpError(404, 'file_not_found', `No file at ${path}: send its slashes as /, not as %2F`)

export const directoryNotFound = (path: string) =>
  withPaths(404, 'directory_not_found', `No directory at ${path || '/'}`, [`${path}/`])

export const noVersion = () => new HttpError(404, 'no_version', 'No version recorded yet: POST one to /api/versions/')

export const versionNotFound = (version: string) => new HttpError(404, 'version_not_found', `No version ${version}`)

export const changeNotFound = (id: number | string) => new HttpError(404, 'change_not_found', `No change ${id}`)

export const neverStored = (path: string) => new HttpError(404, 'file_not_found', `No file was ever at ${path}`)

export const notThere = (path: string, change: number) =>
  new HttpError(404, 'file_not_found', `No file was at ${path} after change ${change}`)

export const historyGone = () =>
  new HttpError(410, 'history_gone', 'What was replaced or deleted then is not kept any more: see KEEP_HISTORY_DAYS')

export const pathConflict = (path: string) =>
  new HttpError(409, 'path_conflict', `Cannot store ${path}: it is a directory, or below a file: choose another path`)

export const targetExists = (paths: string[]) =>
  withPaths(409, 'path_conflict', `A file exists at ${firstOf(paths)}: send "overwrite": true to replace it`, paths)

export const moveIntoItself = (path: string) =>
  new HttpError(409, 'path_conflict', `Cannot move a directory into itself: ${path}`)

export const revertConflict = (paths: string[]) =>
  withPaths(
    409,
    'revert_conflict',
    paths.length > 0
      ? `Changed since: ${firstOf(paths)}: nothing reverted; send "overwrite": true to revert them too`
      : 'There is nothing to revert, or the change is not complete',
    paths,
  )

export const versionExists = (version: string) =>
  new HttpError(409, 'version_exists', `Version ${version} exists already`)

/** Names all files that exist, of a request that may only store new ones. */
export const fileExists = (...paths: string[]) =>
  withPaths(412, 'precondition_failed', `File exists at ${firstOf(paths)}: choose another path, or replace it`, paths)

/** Names all files of a request that do not meet its conditions. */
export const preconditionFailed = (...paths: string[]) =>
  withPaths(412, 'precondition_failed', `${firstOf(paths)} does not meet the conditions: read it again`, paths)

export const treeChanged = (directory: string) =>
  new HttpError(412, 'precondition_failed', `The tree ${directory}/ does not meet the conditions: read it again`)

/** `missing`: up to 1,000 digests. */
export const contentsMissing = (missing: string[]) =>
  new HttpError(409, 'contents_missing', 'Send the missing contents to /api/contents/{sha256}, then this again', {
    members: { missing },
  })

export const fileTooLarge = (maxBytes: number) =>
  new HttpError(413, 'file_too_large', `Maximum file size: ${maxBytes} bytes`)

export const tooManyFiles = (maxFiles: number) =>
  new HttpError(
    413,
    'too_many_files',
    `Too many parts: at most one path and ${maxFiles === 1 ? 'one file' : `${maxFiles} files`}`,
  )

/** `excess`: such as `20000 files`. */
export const treeTooLarge = (excess: string) =>
  new HttpError(413, 'tree_too_large', `The tree has more than ${excess}: nothing changed`)

export const notMultipart = () => new HttpError(415, 'unsupported_media_type', 'Send files as multipart/form-data')

export const contentsUnavailable = (cause: unknown) =>
  unavailable(2, 'The object storage does not answer or refuses access: try again in a moment', cause)

export const contentMissing = () =>
  unavailable(1, 'The same content was deleted during this upload: nothing changed; send it again')

/** Bytes of a content that is arriving are gone: somebody, or a rule of the bucket, removed them. */
export class BytesLost extends HttpError {
  constructor(cause?: unknown) {
    super(503, 'unavailable', 'Bytes that had arrived were removed: send them again', { cause })
  }
}

export const rangeNotSatisfiable = (size: number) =>
  new HttpError(416, 'range_not_satisfiable', `Range outside of the ${size} bytes of the file`, {
    headers: { 'accept-ranges': 'bytes', 'content-range': `bytes */${size}` },
  })

export const insufficientStorage = (cause?: unknown) =>
  new HttpError(507, 'insufficient_storage', 'Disk full, nothing stored: delete files or try again later', { cause })

export const quotaExceeded = (quota: number) =>
  new HttpError(507, 'quota_exceeded', `Quota of ${quota} bytes exceeded, nothing stored: delete files first`)

// Resumable uploads (tus 1.0). Their statuses are those that its clients know.

export const malformedTus = (fault: string) => new HttpError(400, 'malformed_request', fault)

export const concatenationNotSupported = () =>
  new HttpError(400, 'concatenation_not_supported', 'Uploads are not concatenated here: send the file as one upload')

export const uploadNotFound = () =>
  new HttpError(404, 'upload_not_found', 'No such upload: create one with POST /api/uploads/')

export const offsetConflict = (offset: number) =>
  new HttpError(409, 'offset_conflict', `The upload continues at ${offset}: read it with HEAD`, {
    headers: { 'upload-offset': String(offset) },
  })

export const uploadEnded = () =>
  new HttpError(410, 'upload_ended', 'The upload has expired or was deleted: create another one')

export const tusVersionNotSupported = () =>
  new HttpError(412, 'tus_version_not_supported', 'Send Tus-Resumable: 1.0.0', {
    headers: { 'tus-version': '1.0.0' },
  })

export const uploadLengthExceeded = (length: number) =>
  new HttpError(413, 'upload_length_exceeded', `The upload has ${length} bytes: send no more`)

export const notOffsetStream = () =>
  new HttpError(415, 'unsupported_media_type', 'Send application/offset+octet-stream without Content-Encoding')

export const uploadLocked = () =>
  new HttpError(423, 'upload_locked', 'Another request writes to this upload: try again in a moment', { retryAfter: 2 })

export const tooManyUploads = (most: number) =>
  new HttpError(429, 'too_many_uploads', `You have ${most} unfinished uploads: finish or delete one first`, {
    retryAfter: 60,
  })

export const checksumMismatch = () =>
  new HttpError(460, 'checksum_mismatch', 'The bytes do not match Upload-Checksum: send them again')
