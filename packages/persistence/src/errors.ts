/** A data directory or backup cannot be used as requested. The message is for the operator, in full sentences. */
export class DataDirError extends Error {}

/** The database cannot be used as configured. The message is for the operator, in full sentences. */
export class DatabaseRefusedError extends DataDirError {}

/** The database cannot be reached, is locked, fails or does not answer in time. The statement had no effect. */
export class DatabaseUnavailableError extends Error {
  constructor(cause: unknown) {
    super('the database is not available', { cause })
  }
}

/** The connection was lost at COMMIT, and whether the transaction took effect could not be found out in time. */
export class OutcomeUnknownError extends Error {
  constructor(cause: unknown) {
    super('whether the transaction was committed is unknown', { cause })
  }
}

/** The disk of the database is full. The transaction had no effect. */
export class DatabaseFullError extends Error {
  constructor(cause: unknown) {
    super('the disk of the database is full', { cause })
  }
}

/** Why something cannot be read, by the code of its error. */
export function unreadable(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
  return `cannot be read (${code})`
}
