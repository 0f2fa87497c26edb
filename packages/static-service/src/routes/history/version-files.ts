import {
  type App,
  afterQuery,
  answers,
  Next,
  operation,
  Pagination,
  pageOf,
  pageQuery,
} from '@domains-and-files/http'
import { z } from 'zod'
import type { Catalog } from '../../catalog/catalog.ts'
import type { DiffFile } from '../../catalog/history/tree-diff.ts'
import { historyGone, versionNotFound } from '../../errors.ts'
import { prefixQuery } from '../files/browse.ts'
import { type DescribeFiles, FileList } from '../files/file-schema.ts'
import { VersionName } from '../openapi-examples.ts'
import { ChangedFile, describeState } from './changes.ts'

interface Dependencies {
  catalog: Catalog
  describe: DescribeFiles
}

const VersionPath = z.object({ version: VersionName })

const PageQuery = z.strictObject({
  ...pageQuery(50, 1000),
  ...afterQuery(z.string()),
  prefix: prefixQuery('only files below this directory'),
})

const showing = {
  access: 'viewer',
  folders: 'prefix',
  optionalSlash: true,
  tags: ['versions'],
} as const

const errors = [versionNotFound('1.4.0'), historyGone()]

const listVersionFiles = operation({
  ...showing,
  operationId: 'listVersionFiles',
  summary: 'List the files that a version shows',
  description: 'As the list of files, by path, at the moment of the version.',
  params: VersionPath,
  querystring: PageQuery,
  errors,
  ...answers(200, 'One page of the list', FileList),
})

const compareVersions = operation({
  ...showing,
  operationId: 'compareVersions',
  summary: 'List what differs between a version and another, or the current files',
  description:
    'By path: a page holds the three kinds together. `before` is the version of the URL, `after` the other.',
  params: VersionPath,
  querystring: PageQuery.extend({
    to: z
      .string('must be given once')
      .default('current')
      .meta({ description: 'name of the other version; `current`: the files as they are' }),
  }),
  errors,
  ...answers(
    200,
    'One page of the differences',
    z.object({
      added: z.array(ChangedFile),
      removed: z.array(ChangedFile).meta({ examples: [[]] }),
      changed: z.array(ChangedFile).meta({ examples: [[]] }),
      pagination: Pagination,
      next: Next,
    }),
  ),
})

/** Routes of the files that versions show. */
export function registerVersionFileRoutes(app: App, { catalog, describe }: Dependencies) {
  app.get('/api/versions/:version/files', listVersionFiles, async (request, reply) => {
    const { page_size: pageSize, prefix: directory, ...query } = request.query
    const change = await momentOf(catalog, { name: request.params.version, directory })
    const found = await catalog.reads.listAt({ ...query, pageSize, directory, change })
    return {
      files: (await describe(found.rows)).map(({ record }) => record),
      ...pageOf(request, reply, found),
    }
  })
  app.get('/api/versions/:version/diff', compareVersions, async (request, reply) => {
    const { page, page_size: pageSize, after, prefix: directory, to: name } = request.query
    const from = await momentOf(catalog, { name: request.params.version, directory })
    const to = name === 'current' ? latest : await momentOf(catalog, { name, directory })
    const query = { directory, from, to, page, pageSize, after }
    const { rows: files, ...found } = await catalog.reads.diff(query)
    return {
      added: files.filter(({ before }) => !before).map(describeDiff),
      removed: files.filter((file) => !file.after).map(describeDiff),
      changed: files.filter((file) => file.before && file.after).map(describeDiff),
      ...pageOf(request, reply, found),
    }
  })
}

// After every change.
const latest = Number.MAX_SAFE_INTEGER

const describeDiff = ({ path, before, after }: DiffFile) => ({
  path,
  before: describeState(before),
  after: describeState(after),
})

/**
 * The change that left what a version shows.
 * @throws {HttpError} `version_not_found`, or `history_gone` where files of the directory are not kept.
 */
async function momentOf(
  catalog: Catalog,
  { name, directory }: { name: string; directory: string },
): Promise<number> {
  const found = await catalog.findVersion(name)
  if (!found) throw versionNotFound(name)
  if (await catalog.reads.isGone({ directory, change: found.changeId })) throw historyGone()
  return found.changeId
}
