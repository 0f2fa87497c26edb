import { name, sql } from '@domains-and-files/persistence'
import type { FileRow, VersionRow } from '../../files/file-record.ts'
import { records } from '../records.ts'
import type { Outcome } from './commands.ts'
import { type Group, loadTable, write } from './group.ts'
import { FreedContents } from './loaded-files.ts'

/** Adds files as they are, for a restore. Leaves paths that exist. */
export async function importFiles(group: Group, rows: FileRow[]): Promise<Outcome> {
  const paths = rows.map(({ path }) => path)
  const digests = rows.map(({ digest }) => digest)
  const table = await loadTable(group, paths, digests)
  const freed = new FreedContents()
  for (const row of rows) {
    if (table.files.find(row.path)) continue
    if (table.files.isDirectory(row.path) || !table.files.add(row, freed)) {
      throw new Error(`${row.path} is a directory, or below a file`)
    }
    table.dates.atLeast(row.updatedAt)
  }
  table.files.accept()
  await write(group, table)
  return { done: 'other' }
}

/** Adds version records with their numbers, for a restore. Leaves those that exist. */
export async function importVersions({ transaction }: Group, rows: VersionRow[]): Promise<Outcome> {
  const versions = rows.map(({ id, version, changelog, createdBy, createdAt }) => ({
    ...{ id, version, changelog, created_by: createdBy, created_at: createdAt },
  }))
  await transaction.run(sql`insert into ${name('versions')} (id, version, changelog, created_by, created_at)
    select id, version, changelog, created_by, created_at from ${records(versions, {
      id: 'bigint',
      version: 'text',
      changelog: 'text',
      created_by: 'text',
      created_at: 'text',
    })} where true on conflict do nothing`)
  return { done: 'other' }
}
