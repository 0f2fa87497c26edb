import type { SqlTransaction } from '@domains-and-files/persistence'
import { ChangeDates } from './change-dates.ts'
import { type Outcome, Rejected } from './commands.ts'
import { loadFiles } from './load-files.ts'
import { LoadedFiles } from './loaded-files.ts'
import { writeChanges } from './write-changes.ts'

/** What the commands of a group share. */
export interface Group<Transaction extends SqlTransaction = SqlTransaction> {
  transaction: Transaction
  nowMs: number
  /** Digests without bytes: commands that name them are rejected. */
  missing: Set<string>
  /** Contents that got their first reference, or lost their last one. */
  references: Map<string, { before: boolean; after: boolean }>
}

/** What commands are applied to. */
export interface Table {
  files: LoadedFiles
  dates: ChangeDates
}

/** Loads what commands on these paths can touch. */
export async function loadTable(
  { transaction, nowMs }: Group,
  paths: string[],
  digests: string[] = [],
): Promise<Table> {
  const { rows, lastChangedAt } = await loadFiles(transaction, { paths, digests })
  return { files: new LoadedFiles(rows), dates: new ChangeDates(nowMs, lastChangedAt) }
}

/** Writes what commands have left. */
export async function write({ transaction, references }: Group, table: Table): Promise<void> {
  await writeChanges(transaction, table.files, table.dates)
  for (const { key, before, after } of table.files.blobs.changes()) {
    const known = references.get(key)
    references.set(key, {
      before: known?.before ?? before !== undefined,
      after: after !== undefined,
    })
  }
}

/** @throws all other errors. */
export function refusalOf(error: unknown): Outcome {
  if (error instanceof Rejected) return { refused: error.reason, path: error.path }
  throw error
}
