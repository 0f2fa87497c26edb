import { callerOf } from '@house/auth'
import { type App, Pagination, pageQuery, paginate } from '@house/http'
import { z } from 'zod'
import type { Catalog } from './catalog.ts'
import { noVersion } from './errors.ts'
import { etagOf, isCurrent } from './etag.ts'
import type { VersionRow } from './file-row.ts'
import { CategoryCount, listCategories } from './files.ts'

const longestChangelog = 65_536

const VersionRecord = z
  .object({
    id: z.int(),
    version: z.string().meta({ examples: ['1.4.0'] }),
    changelog: z.string(),
    created_by: z.string(),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Version' })

const NewVersion = z.strictObject({
  version: z
    .string('must be a text')
    .regex(/^[A-Za-z0-9._+-]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 . _ + -'),
  changelog: z
    .string('must be a text')
    .refine((text) => text.isWellFormed(), 'must be valid Unicode')
    .refine((text) => Buffer.byteLength(text) <= longestChangelog, 'must have at most 65536 bytes'),
})

const Stats = z
  .object({
    total_files: z.int(),
    total_size: z.int(),
    stored_size: z.int().meta({ description: 'bytes of the distinct contents' }),
    categories: z.array(CategoryCount),
    versions: z.int(),
  })
  .meta({ id: 'Stats' })

const unchanged = z.undefined().meta({ description: 'it is still as If-None-Match says' })

/** The routes of /api/versions. */
export function serveVersions(app: App, catalog: Catalog) {
  const tags = ['versions']

  for (const slash of ['', '/']) {
    // Each operation of the description has a name of its own.
    const suffix = slash ? 'Slash' : ''
    app.post(
      `/api/versions${slash}`,
      {
        config: { access: 'editor' },
        schema: {
          operationId: `postVersions${suffix}`,
          summary: 'Record a version',
          tags,
          body: NewVersion,
          response: { 201: VersionRecord },
        },
      },
      async (request, reply) => {
        const createdBy = callerOf(request).username
        const version = await catalog.record({ ...request.body, createdBy })
        return reply.code(201).send(describe(version))
      },
    )

    app.get(
      `/api/versions${slash}`,
      {
        config: { access: 'viewer' },
        schema: {
          operationId: `getVersions${suffix}`,
          summary: 'List the versions, newest first',
          tags,
          querystring: z.strictObject(pageQuery(50, 200)),
          response: { 200: z.object({ versions: z.array(VersionRecord), pagination: Pagination }) },
        },
      },
      async ({ query }) => {
        const versions = await catalog.listVersions(query.page, query.page_size)
        const { versions: total } = await catalog.totals()
        return { versions: versions.map(describe), pagination: paginate(query, total) }
      },
    )

    app.get(
      `/api/versions/current${slash}`,
      {
        config: { access: 'public' },
        schema: {
          operationId: `getVersionsCurrent${suffix}`,
          summary: 'Read the newest version',
          tags,
          response: { 200: VersionRecord, 304: unchanged },
        },
      },
      async (request, reply) => {
        const newest = await catalog.newestVersion()
        if (!newest) throw noVersion()
        const etag = etagOf(newest)
        reply.header('etag', etag).header('cache-control', 'public, max-age=5')
        if (isCurrent(request.headers['if-none-match'], etag)) {
          return reply.code(304).send(undefined)
        }
        return reply.send(describe(newest))
      },
    )

    app.get(
      `/api/versions/stats${slash}`,
      {
        config: { access: 'viewer' },
        schema: {
          operationId: `getVersionsStats${suffix}`,
          summary: 'Count what is stored',
          tags,
          response: { 200: Stats },
        },
      },
      async () => {
        const { totalFiles, totalSize, storedSize, versions } = await catalog.totals()
        return {
          total_files: totalFiles,
          total_size: totalSize,
          stored_size: storedSize,
          categories: await listCategories(catalog),
          versions,
        }
      },
    )
  }
}

const describe = ({ id, version, changelog, createdBy, createdAt }: VersionRow) => ({
  id,
  version,
  changelog,
  created_by: createdBy,
  created_at: createdAt,
})
