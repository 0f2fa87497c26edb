/** Why a folder cannot be used as it was asked, in plain sentences for the person who asked. */
export class DataDirError extends Error {}

/** A failure that a person can mend, in their words; any other as it is. */
export function explainFailure(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const code = 'errcode' in error ? `SQLITE_${error.errcode}` : 'code' in error ? error.code : ''
  const words = reasons[String(code)]
  return words === undefined ? error : new DataDirError(`${words} (${error.message}).`)
}

const reasons: Record<string, string> = {
  ENOSPC: 'The disk is full: nothing was left of what had been copied. Make room and try again',
  EDQUOT: 'The quota is used up: nothing was left of what had been copied. Make room and try again',
  // https://www.sqlite.org/rescode.html: SQLITE_FULL, SQLITE_CANTOPEN, SQLITE_CORRUPT, SQLITE_NOTADB.
  SQLITE_13: 'The disk is full: nothing was left of what had been copied. Make room and try again',
  SQLITE_14: 'The database cannot be opened: run this as the user that the service runs as',
  SQLITE_11: 'The database is damaged',
  SQLITE_26: 'The database is damaged',
  SQLITE_8: 'That is not allowed: run this as the user that the service runs as',
  EACCES: 'That is not allowed: run this as the user that the service runs as',
  EPERM: 'That is not allowed: run this as the user that the service runs as',
  EROFS: 'The disk can only be read',
  ENOTDIR: 'A file lies where a folder should be',
}
