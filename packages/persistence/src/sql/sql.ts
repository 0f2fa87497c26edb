import type { Dialect, Statement } from './statement.ts'

/** Runs statements. Integers are numbers, blobs are Buffers, in both dialects. */
export interface SqlTransaction {
  readonly dialect: Dialect
  all<Row extends object>(statement: Statement): Promise<Row[]>
  get<Row extends object>(statement: Statement): Promise<Row | undefined>
  /** Returns the number of rows changed. */
  run(statement: Statement): Promise<number>
}

/**
 * A database of either dialect. Failures of the database are thrown as `DatabaseFullError`, `DatabaseUnavailableError` or
 * `OutcomeUnknownError`; errors of a statement, such as a unique violation, are thrown unchanged.
 */
export interface Sql extends SqlTransaction {
  /**
   * Runs one read-write transaction: durable when it resolves, without effect when it throws (except with
   * `OutcomeUnknownError`). SQLite runs one at a time; PostgreSQL runs them side by side (READ COMMITTED).
   */
  transaction<T>(work: (transaction: SqlTransaction) => Promise<T>): Promise<T>
  /** Runs reads on one consistent snapshot. */
  snapshot<T>(work: (snapshot: SqlTransaction) => Promise<T>): Promise<T>
}

/** Ordered migrations of each part of a service, by its name. They bind no values. Plain strings: PostgreSQL only. */
export type Migrations = Record<string, (Statement | string)[]>

/** Whether an error is a unique violation. */
export const isUniqueViolation = (error: unknown): boolean =>
  error instanceof Error &&
  'code' in error &&
  /^(?:23505|SQLITE_CONSTRAINT_(?:UNIQUE|PRIMARYKEY|ROWID))$/.test(String(error.code))
