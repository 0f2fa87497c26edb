import type { Transaction } from '@domains-and-files/persistence'
import type { NewVersion, VersionRow } from '../../files/file-record.ts'
import type { Outcome } from '../commands.ts'

/** The columns of a version, named as in `VersionRow`. */
export const versionColumns =
  'id, version, changelog, created_by "createdBy", created_at "createdAt"'

/** Adds a version record. Numbers have no gaps: the last one is the count. */
export async function recordVersion(
  transaction: Transaction,
  { version, changelog, createdBy }: NewVersion,
  now: string,
): Promise<Outcome> {
  const [row] = await transaction.query<VersionRow & Record<string, unknown>>(
    `insert into static_service.versions (id, version, changelog, created_by, created_at)
     select coalesce(max(id), 0) + 1, $1, $2, $3, $4 from static_service.versions
     on conflict (version) do nothing returning ${versionColumns}`,
    [version, changelog, createdBy, now],
  )
  return row ? { done: 'record', version: row } : { refused: 'version_exists', path: version }
}
