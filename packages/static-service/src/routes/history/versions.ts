import { type App, answers, isNotModified, listSchema, operations, pageQuery, paginate } from '@domains-and-files/http'
import { z } from 'zod'
import type { Catalog } from '../../catalog/catalog.ts'
import { etagOf } from '../../catalog/changes/file-changes.ts'
import type { VersionRow } from '../../catalog/tables.ts'
import { noVersion, versionExists, versionNotFound } from '../../errors.ts'
import { CategoryCount, UsageQuery } from '../files/browse.ts'
import { ifNoneMatchHeader, recordTag, Username, VersionName } from '../schemas.ts'

export const describeVersion = ({ id, version, changelog, ...row }: VersionRow) => ({
  id,
  version,
  changelog,
  created_by: row.createdBy,
  created_at: row.createdAt,
  change: row.changeId,
  files_kept: row.filesKept === 1,
})

const maxChangelogBytes = 65_536

// Each byte of a changelog may be escaped in JSON.
const bodyLimit = 8 * maxChangelogBytes

const exampleChangelog = 'Dark mode and a faster start.'

const VersionRecord = z
  .object({
    id: z.int(),
    version: VersionName,
    changelog: z.string().meta({ examples: [exampleChangelog] }),
    created_by: Username,
    created_at: z.iso.datetime(),
    change: z.int().describe('the version shows files as this change left them; 0: there was none'),
    files_kept: z.boolean().describe('false: not all files that it shows are kept any more'),
  })
  .meta({ id: 'Version' })

const ListedVersion = VersionRecord.extend({
  changelog_truncated: z
    .literal(true)
    .optional()
    .describe('the changelog is longer than 1 KiB: GET /api/versions/{version}'),
}).meta({ id: 'ListedVersion' })

// Paths of other routes, and steps in a path: no URL would lead to a version of this name.
const unreadable = new Set(['current', 'stats', '.', '..'])

export const NewVersion = z
  .strictObject({
    version: z
      .string()
      .regex(/^[A-Za-z0-9._+-]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 . _ + -')
      .refine((name) => !unreadable.has(name), 'must not be current, stats, . or ..'),
    changelog: z
      .string()
      .refine(
        // Databases cut text at U+0000, or refuse it.
        (text) => text.isWellFormed() && !text.includes('\0'),
        'must be valid Unicode without U+0000',
      )
      .refine((text) => Buffer.byteLength(text) <= maxChangelogBytes, 'must have at most 65536 bytes')
      .describe('what changed, at most 64 KiB'),
  })
  .meta({ id: 'NewVersion', examples: [{ version: '1.4.0', changelog: exampleChangelog }] })

const Stats = z
  .object({
    total_files: z.int(),
    total_size: z.int().describe('bytes of all files'),
    stored_size: z.int().describe('bytes of the distinct contents of files'),
    past_size: z.int().describe('bytes kept only for the history'),
    categories: z.array(CategoryCount),
    versions: z.int(),
  })
  .meta({ id: 'Stats' })

const routes = operations({
  shared: { access: 'viewer', optionalSlash: true, folders: 'none', tags: ['versions'] },
  createVersion: {
    access: 'editor',
    summary: 'Record a version',
    description: 'A name for the current state of the files. Each name can be recorded once.',
    body: NewVersion,
    errors: [versionExists('1.4.0')],
    ...answers(201, 'The recorded version, now the current one', VersionRecord),
  },
  listVersions: {
    summary: 'List the versions, newest first',
    description: 'Changelogs are cut to 1 KiB.',
    querystring: z.strictObject(pageQuery(50, 200)),
    ...answers(200, 'One page of the list', listSchema(undefined, 'versions', ListedVersion)),
  },
  getVersion: {
    summary: 'Read one version with its whole changelog',
    description: 'The list cuts long changelogs.',
    params: z.object({ version: VersionName }),
    errors: [versionNotFound('1.4.0')],
    ...answers(200, 'The version', VersionRecord),
  },
  getCurrentVersion: {
    access: 'public',
    summary: 'Read the newest version',
    description: 'Public, and cacheable for a few seconds.',
    requestHeaders: ifNoneMatchHeader,
    errors: [noVersion()],
    responses: {
      200: { description: 'The newest version', headers: recordTag, body: VersionRecord },
      304: { description: 'Not modified since the version of If-None-Match', headers: recordTag },
    },
  },
  getStats: {
    folders: 'prefix',
    summary: 'Storage statistics',
    description: 'Counted while files change, so that reading them is cheap; below a `prefix` when they are read.',
    querystring: UsageQuery,
    ...answers(200, 'Files, bytes, categories and versions', Stats),
  },
})

export async function requireVersion(catalog: Catalog, name: string): Promise<VersionRow> {
  const found = await catalog.findVersion(name)
  if (!found) throw versionNotFound(name)
  return found
}

export function registerVersionRoutes(app: App, catalog: Catalog) {
  app.post('/api/versions', { ...routes.createVersion, bodyLimit }, async ({ body, caller, id: requestId }) =>
    describeVersion(await catalog.writes.record({ ...body, createdBy: caller.username, requestId })),
  )
  app.get('/api/versions', routes.listVersions, async ({ query }) => {
    const { page, page_size: take } = query
    const versions = await catalog.reads.versions({ skip: (page - 1) * take, take })
    const { versions: total } = await catalog.totals()
    return {
      versions: versions.map(({ isTruncated, ...version }) => ({
        ...describeVersion(version),
        ...(isTruncated ? { changelog_truncated: true as const } : {}),
      })),
      pagination: paginate(query, total),
    }
  })
  app.get('/api/versions/current', routes.getCurrentVersion, async (request, reply) => {
    const newest = await catalog.newestVersion()
    if (!newest) throw noVersion()
    const etag = etagOf(newest)
    reply.header('etag', etag).header('cache-control', 'public, max-age=5')
    if (isNotModified(request, etag)) return reply.code(304).send(undefined)
    return reply.send(describeVersion(newest))
  })
  app.get('/api/versions/:version', routes.getVersion, async ({ params }) =>
    describeVersion(await requireVersion(catalog, params.version)),
  )
  app.get('/api/versions/stats', routes.getStats, async ({ query }) => {
    const usage = await catalog.reads.usage(query.prefix)
    return {
      total_files: usage.totalFiles,
      total_size: usage.totalSize,
      stored_size: usage.storedSize,
      past_size: usage.pastSize,
      categories: usage.categories,
      versions: usage.versions,
    }
  })
}
