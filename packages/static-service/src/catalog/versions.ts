import { appendEvents } from '@domains-and-files/events'
import { name, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { versionExists } from '../errors.ts'
import { recordsOf, selected } from './records.ts'
import { type VersionRow, versionColumns } from './tables.ts'

export interface NewVersion {
  version: string
  changelog: string
  createdBy: string
  requestId?: string
}

/** Adds a version record. Numbers have no gaps: the last one is the count. @throws {HttpError} `version_exists`. */
export async function recordVersion(
  { transaction, nowMs }: { transaction: SqlTransaction; nowMs: number },
  { version, changelog, createdBy: by, requestId }: NewVersion,
): Promise<VersionRow> {
  const createdAt = new Date(nowMs).toISOString()
  const row = await transaction.get<VersionRow>(sql`
    insert into ${name('versions')} (id, version, changelog, created_by, created_at, change_id)
    select coalesce(max(id), 0) + 1, ${version}, ${changelog}, ${by}, ${createdAt},
      (select last_change from ${name('catalog')})
    from ${name('versions')} where true
    on conflict (version) do nothing returning ${selected(versionColumns)}`)
  if (!row) throw versionExists(version)
  await appendEvents(transaction, [{ type: 'version.created', by, requestId, data: row }])
  return row
}

/** Marks versions that show any of these rows as incomplete. */
export async function markIncomplete(
  transaction: SqlTransaction,
  rows: { changeId: number; endedBy: number }[],
): Promise<void> {
  await transaction.run(sql`update ${name('versions')} set files_kept = 0 where files_kept = 1 and exists (
    select 1 from ${spanRecords(rows)}
    where record.first <= change_id and change_id < record.until)`)
}

const spanRecords = recordsOf({ changeId: 'first bigint', endedBy: 'until bigint' })

/** Maximum bytes of a changelog in a list. */
const maxListedBytes = 1024

const { changelog: _, ...otherColumns } = versionColumns

/** A version in a list: its changelog is truncated to 1 KiB. */
export interface ListedVersion extends VersionRow {
  isTruncated: boolean
}

/** Versions, newest first. */
export async function listVersions(
  database: SqlTransaction,
  { skip, take }: { skip: number; take: number },
): Promise<ListedVersion[]> {
  const rows = await database.all<VersionRow & { bytes: number }>(sql`
    select ${selected(otherColumns)}, substr(changelog, 1, ${maxListedBytes}) changelog, octet_length(changelog) bytes
    from ${name('versions')} order by id desc limit ${take} offset ${skip}`)
  return rows.map(({ bytes, ...row }) => ({
    ...row,
    changelog: cutUtf8(row.changelog),
    isTruncated: bytes > maxListedBytes,
  }))
}

// In a stream, the decoder holds back the part of a character at the end.
const cutUtf8 = (text: string) =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.from(text).subarray(0, maxListedBytes), { stream: true })
