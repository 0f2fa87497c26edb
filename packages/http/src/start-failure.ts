type Kind = new (...args: never[]) => Error

/**
 * Ends the process with status 1 and one sentence on standard error, for the person who starts the service: where the
 * error is of one of these kinds, or the disk, a database or the address cannot be used. @throws every other error.
 */
export function exitOnStartFailure(error: unknown, kinds: Kind[]): never {
  const isForPeople = kinds.some((kind) => error instanceof kind)
  const sentence = error instanceof Error && (isForPeople ? error.message : explain(error))
  if (!sentence) throw error
  process.stderr.write(`${sentence}\n`)
  process.exit(1)
}

function explain(error: Error & { code?: unknown; syscall?: unknown }): string | undefined {
  const code = String(error.code)
  // Such an error names the call and the path or the address.
  if (error.syscall) return `Cannot start: ${error.message}`
  if (code === 'DATABASE_NEWER') return error.message
  if (/^SQLITE_(?:BUSY|LOCKED)/.test(code)) {
    return 'Cannot start: another process has locked the database in DATA_DIR: stop it first.'
  }
  if (/^SQLITE_(?:CORRUPT|NOTADB)/.test(code)) {
    return `Cannot start: the database in DATA_DIR is damaged (${error.message}): restore it from a backup.`
  }
  if (/SQLITE_/.test(code)) {
    return `Cannot start: the database in DATA_DIR cannot be used: ${error.message}.`
  }
  return undefined
}
