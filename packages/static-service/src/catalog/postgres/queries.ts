import type { Postgres } from '@domains-and-files/persistence'
import type { CategoryCount, FileRow, VersionRow } from '../../files/file-record.ts'
import { parentOf } from '../../files/path-segments.ts'
import type { ListedVersion, SizeRange, Totals } from '../catalog.ts'
import { cutChangelog, maxListedBytes } from '../listed-version.ts'
import { fileColumns } from './file-columns.ts'
import { versionColumns } from './version-rows.ts'

/** Look-ups by key, and counters. */
export class Queries {
  readonly #postgres: Postgres

  constructor(postgres: Postgres) {
    this.#postgres = postgres
  }

  /** The file at a path, and whether the path is a directory or lies below a file. */
  async findTarget(path: string): Promise<{ row: FileRow | undefined; conflicts: boolean }> {
    const above: string[] = []
    for (let at = parentOf(path); at !== ''; at = parentOf(at)) above.push(at)
    const [found] = await this.#postgres.query<{ row: FileRow | null; conflicts: boolean }>(
      `select (select row_to_json(file) from (select ${fileColumns} from static_service.files where path = $1) file) "row",
         exists (select from static_service.directories where path = $1)
           or exists (select from static_service.files where path = any($2)) conflicts`,
      [path, above],
    )
    return { row: found?.row ?? undefined, conflicts: found?.conflicts ?? false }
  }

  /** Bytes of all contents, and what of it depends on a new one at this path. */
  async readQuota(path: string, { minBytes, maxBytes }: SizeRange) {
    const [found] = await this.#postgres.query<{
      storedSize: number
      hasSize: boolean
      freed: number
    }>(
      `select stored_size "storedSize",
         exists (select from static_service.files where size between $2 and $3) "hasSize",
         coalesce((select blobs.size from static_service.files join static_service.blobs using (digest)
           where path = $1 and refs = 1), 0) freed
       from static_service.catalog`,
      [path, minBytes, maxBytes],
    )
    if (!found) throw new Error('the catalog has no row of counts')
    return found
  }

  async isReferenced(digest: string): Promise<boolean> {
    const rows = await this.#postgres.query('select from static_service.blobs where digest = $1', [
      digest,
    ])
    return rows.length > 0
  }

  categories(): Promise<CategoryCount[]> {
    return this.#postgres.query<CategoryCount & Record<string, unknown>>(
      `select category, file_count "fileCount", total_size "totalSize" from static_service.categories
       order by file_count desc, category`,
    )
  }

  /** Counters, and the newest version record's name. */
  async totals(): Promise<Totals & { newestVersion: string | null }> {
    const [totals] = await this.#postgres.query<Totals & { newestVersion: string | null }>(
      `select file_count "totalFiles", total_size "totalSize", stored_size "storedSize",
         coalesce(newest.id, 0) versions, newest.version "newestVersion"
       from static_service.directories cross join static_service.catalog
         left join (select id, version from static_service.versions order by id desc limit 1) newest on true
       where path = ''`,
    )
    if (!totals) throw new Error('the catalog has no root directory')
    return totals
  }

  newestVersion(): Promise<VersionRow | undefined> {
    return this.#version('order by id desc limit 1', [])
  }

  findVersion(version: string): Promise<VersionRow | undefined> {
    return this.#version('where version = $1', [version])
  }

  /** The page of versions after the first `skip`, newest first. */
  async listVersions(skip: number, take: number): Promise<ListedVersion[]> {
    const rows = await this.#postgres.query<VersionRow & { bytes: number }>(
      `select id, version, substr(changelog, 1, $1) changelog, octet_length(changelog) bytes,
         created_by "createdBy", created_at "createdAt"
       from static_service.versions order by id desc limit $2 offset $3`,
      [maxListedBytes, take, skip],
    )
    return rows.map(cutChangelog)
  }

  async contentPrefixes(): Promise<string[]> {
    const rows = await this.#postgres.query<{ prefix: string }>(
      'select distinct substr(digest, 1, 2) prefix from static_service.blobs order by 1',
    )
    return rows.map(({ prefix }) => prefix)
  }

  contents(prefix: string): Promise<{ digest: string; size: number }[]> {
    return this.#postgres.query(
      'select digest, size from static_service.blobs where digest between $1 and $2',
      [prefix, `${prefix}g`],
    )
  }

  async #version(where: string, values: unknown[]): Promise<VersionRow | undefined> {
    const [row] = await this.#postgres.query<VersionRow & Record<string, unknown>>(
      `select ${versionColumns} from static_service.versions ${where}`,
      values,
    )
    return row
  }
}
