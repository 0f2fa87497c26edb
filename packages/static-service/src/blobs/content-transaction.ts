import type { SqlTransaction } from '@domains-and-files/persistence'

/** The part of a catalog commit that concerns contents: their rows change in the transaction of the files' rows. */
export interface ContentTransaction<Transaction extends SqlTransaction = SqlTransaction> {
  /**
   * Those of the digests that have no bytes to commit: neither stored nor uploaded. Locks what it finds, so that the
   * answer holds until the transaction ends.
   */
  findMissing(transaction: Transaction, digests: string[]): Promise<Set<string>>

  /**
   * Stores the contents that got their first reference in this transaction, and turns those that lost their last one
   * into garbage. The two lists are disjoint.
   */
  apply(transaction: Transaction, change: { added: string[]; freed: string[] }): Promise<void>
}
