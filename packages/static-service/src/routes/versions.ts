import { callerOf } from '@domains-and-files/auth'
import { type App, isCurrent, paginate } from '@domains-and-files/http'
import type { Catalog } from '../catalog/catalog.ts'
import { noVersion, versionNotFound } from '../errors.ts'
import type { VersionRow } from '../files/file-record.ts'
import { etagOf } from '../rfc9110/entity-tags.ts'
import { describeCategory } from './file-schema.ts'
import {
  createVersionSchema,
  currentVersionSchema,
  listVersionsSchema,
  maxVersionBytes,
  statsSchema,
  versionSchema,
} from './version-schema.ts'

/** Routes of /api/versions, each with and without a trailing slash. */
export function registerVersionRoutes(app: App, catalog: Catalog) {
  for (const slash of ['', '/']) {
    createVersion(app, slash, catalog)
    listVersions(app, slash, catalog)
    getCurrentVersion(app, slash, catalog)
    getStats(app, slash, catalog)
    getVersion(app, slash, catalog)
  }
}

function createVersion(app: App, slash: string, catalog: Catalog) {
  app.post(
    `/api/versions${slash}`,
    { config: { access: 'editor' }, bodyLimit: maxVersionBytes, schema: createVersionSchema },
    async (request, reply) => {
      const createdBy = callerOf(request).username
      const version = await catalog.record({ ...request.body, createdBy })
      return reply.code(201).send(describe(version))
    },
  )
}

function listVersions(app: App, slash: string, catalog: Catalog) {
  app.get(
    `/api/versions${slash}`,
    { config: { access: 'viewer' }, schema: listVersionsSchema },
    async ({ query }) => {
      const versions = await catalog.listVersions(query.page, query.page_size)
      const { versions: total } = await catalog.totals()
      return {
        versions: versions.map(({ isTruncated, ...version }) => ({
          ...describe(version),
          ...(isTruncated ? { changelog_truncated: true as const } : {}),
        })),
        pagination: paginate(query, total),
      }
    },
  )
}

function getCurrentVersion(app: App, slash: string, catalog: Catalog) {
  app.get(
    `/api/versions/current${slash}`,
    { config: { access: 'public' }, schema: currentVersionSchema },
    async (request, reply) => {
      const newest = await catalog.newestVersion()
      if (!newest) throw noVersion()
      const etag = etagOf(newest)
      reply.header('etag', etag).header('cache-control', 'public, max-age=5')
      if (isCurrent(request.headers['if-none-match'], etag)) return reply.code(304).send(undefined)
      return reply.send(describe(newest))
    },
  )
}

function getStats(app: App, slash: string, catalog: Catalog) {
  app.get(
    `/api/versions/stats${slash}`,
    { config: { access: 'viewer' }, schema: statsSchema },
    async () => {
      const { totalFiles, totalSize, storedSize, versions } = await catalog.totals()
      return {
        total_files: totalFiles,
        total_size: totalSize,
        stored_size: storedSize,
        categories: (await catalog.categories()).map(describeCategory),
        versions,
      }
    },
  )
}

function getVersion(app: App, slash: string, catalog: Catalog) {
  app.get(
    `/api/versions/:version${slash}`,
    { config: { access: 'viewer' }, schema: versionSchema },
    async ({ params }) => {
      const version = await catalog.findVersion(params.version)
      if (!version) throw versionNotFound(params.version)
      return describe(version)
    },
  )
}

const describe = ({ id, version, changelog, createdBy, createdAt }: VersionRow) => ({
  id,
  version,
  changelog,
  created_by: createdBy,
  created_at: createdAt,
})
