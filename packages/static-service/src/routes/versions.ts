import { callerOf } from '@domains-and-files/auth'
import { type App, isCurrent, Pagination, pageQuery, paginate } from '@domains-and-files/http'
import { z } from 'zod'
import type { Catalog } from '../catalog/catalog.ts'
import { noVersion, versionExists } from '../errors.ts'
import type { VersionRow } from '../files/file-record.ts'
import { etagOf } from '../rfc9110/entity-tags.ts'
import { CategoryCount } from './file-schema.ts'
import { listCategories } from './files.ts'
import { version as exampleVersion, recordTag, stats, takesNoneMatch } from './openapi-examples.ts'

const longestChangelog = 65_536

const VersionRecord = z
  .object({
    id: z.int(),
    version: z.string(),
    changelog: z.string(),
    created_by: z.string().meta({ description: 'a username' }),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Version', examples: [exampleVersion] })

const NewVersion = z
  .strictObject({
    version: z
      .string('must be a text')
      .regex(/^[A-Za-z0-9._+-]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 . _ + -'),
    changelog: z
      .string('must be a text')
      .refine((text) => text.isWellFormed(), 'must be valid Unicode')
      .refine(
        (text) => Buffer.byteLength(text) <= longestChangelog,
        'must have at most 65536 bytes',
      )
      .meta({ description: 'what changed, at most 64 KiB' }),
  })
  .meta({
    id: 'NewVersion',
    examples: [{ version: exampleVersion.version, changelog: exampleVersion.changelog }],
  })

const Stats = z
  .object({
    total_files: z.int(),
    total_size: z.int().meta({ description: 'bytes of all files' }),
    stored_size: z.int().meta({ description: 'bytes of the distinct contents' }),
    categories: z.array(CategoryCount),
    versions: z.int(),
  })
  .meta({ id: 'Stats', examples: [stats] })

/** The routes of /api/versions. */
export function registerVersionRoutes(app: App, catalog: Catalog) {
  const tags = ['versions']

  for (const slash of ['', '/']) {
    app.post(
      `/api/versions${slash}`,
      {
        config: { access: 'editor' },
        schema: {
          operationId: 'createVersion',
          summary: 'Record a version',
          description: 'Of what the files make up together, by a name of your own and once each.',
          tags,
          body: NewVersion,
          errors: [versionExists(exampleVersion.version)],
          responses: { 201: { description: 'The version, from now on the current one' } },
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
          operationId: 'listVersions',
          summary: 'List the versions, newest first',
          tags,
          responses: { 200: { description: 'One page of the list' } },
          querystring: z.strictObject(pageQuery(50, 200)),
          response: {
            200: z.object({ versions: z.array(VersionRecord), pagination: Pagination }).meta({
              examples: [
                {
                  versions: [exampleVersion],
                  pagination: paginate({ page: 1, page_size: 50 }, 1),
                },
              ],
            }),
          },
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
          operationId: 'getCurrentVersion',
          summary: 'Read the newest version',
          description: 'For everybody, and for caches for a few seconds.',
          tags,
          requestHeaders: takesNoneMatch,
          errors: [noVersion()],
          responses: {
            200: { description: 'The newest version', headers: recordTag },
            304: { description: 'It is still as If-None-Match says', headers: recordTag },
          },
          response: { 200: VersionRecord, 304: z.undefined() },
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
          operationId: 'getStats',
          summary: 'Count what is stored',
          tags,
          responses: { 200: { description: 'Files, bytes, categories and versions' } },
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
