import { callerOf } from '@domains-and-files/auth'
import {
  type App,
  afterQuery,
  Next,
  nextOf,
  Pagination,
  pageQuery,
  paginate,
} from '@domains-and-files/http'
import { z } from 'zod'
import type { Catalog } from '../../catalog/catalog.ts'
import { changeActions } from '../../catalog/changes/change-entry.ts'
import {
  changeNotFound,
  historyGone,
  insufficientStorage,
  invalidPath,
  pathConflict,
  quotaExceeded,
  revertConflict,
} from '../../errors.ts'
import { checkEncoding, readDirectory } from '../../files/file-path.ts'
import { actorOf } from '../actor.ts'
import { prefixQuery } from '../files/browse.ts'
import { change, changedFile } from '../openapi-examples.ts'
import {
  Change,
  ChangedFile,
  ChangeId,
  describeChange,
  describeState,
  forgottenIf,
} from './change-schema.ts'

/** Routes of what requests did to files. */
export function registerChangeRoutes(app: App, catalog: Catalog) {
  for (const slash of ['', '/']) listChanges(app, slash, catalog)
  getChange(app, catalog)
  revertChange(app, catalog)
}

const tags = ['history']

const listChangesSchema = {
  operationId: 'listChanges',
  summary: 'List who changed which files, newest first',
  description:
    'Each request that changes files is one change. Callers limited to folders see those that changed nothing outside them.',
  tags,
  querystring: z.strictObject({
    ...pageQuery(50, 200),
    ...afterQuery(z.int().positive()),
    prefix: prefixQuery('only changes of a file below this directory'),
    by: z
      .string('must be given once')
      .optional()
      .meta({ description: 'only changes of this user' }),
    action: z
      .enum(changeActions, `must be one of ${changeActions.join(', ')}`)
      .optional()
      .meta({ description: 'only changes of this kind' }),
    since: z.iso
      .datetime({ offset: true, error: 'must be a time such as 2027-01-15T09:30:00Z' })
      .transform((time) => new Date(time).toISOString())
      .optional()
      .meta({ description: 'only changes at this time or later' }),
  }),
  errors: [invalidPath('a segment is empty')],
  responses: { 200: { description: 'One page of the list' } },
  response: {
    200: z.object({ changes: z.array(Change), pagination: Pagination, next: Next }).meta({
      examples: [
        {
          changes: [change],
          pagination: paginate({ page: 1, page_size: 50 }, 1),
          next: null,
        },
      ],
    }),
  },
}

function listChanges(app: App, slash: string, catalog: Catalog) {
  app.get(
    `/api/changes${slash}`,
    { config: { access: 'viewer', folders: 'prefix' }, schema: listChangesSchema },
    async (request, reply) => {
      checkEncoding(request.url)
      const { after, page_size: pageSize, ...query } = request.query
      const prefix = readDirectory(query.prefix)
      const { folders: within } = callerOf(request)
      const found = await catalog.history.changes({
        ...{ ...query, prefix, within, pageSize, before: after },
      })
      return {
        changes: found.changes.map(describeChange),
        pagination: paginate(request.query, found.total),
        next: nextOf(request, reply, found.next),
      }
    },
  )
}

const AtChange = z.object({ id: ChangeId })

const getChangeSchema = {
  operationId: 'getChange',
  summary: 'Read one change with its files',
  description: 'A page of the files, by path. `before` null: new; `after` null: removed.',
  tags,
  params: AtChange,
  querystring: z.strictObject({ ...pageQuery(50, 1000), ...afterQuery(z.string()) }),
  errors: [changeNotFound(change.id)],
  responses: { 200: { description: 'The change and a page of its files' } },
  response: {
    200: Change.extend({ files: z.array(ChangedFile), pagination: Pagination, next: Next }).meta({
      examples: [
        {
          ...change,
          files: [changedFile],
          pagination: paginate({ page: 1, page_size: 50 }, 1),
          next: null,
        },
      ],
    }),
  },
}

function getChange(app: App, catalog: Catalog) {
  app.get(
    '/api/changes/:id',
    { config: { access: 'viewer', folders: 'handler' }, schema: getChangeSchema },
    async (request, reply) => {
      const { id } = request.params
      const { after, page, page_size: pageSize } = request.query
      const { folders: within } = callerOf(request)
      const found = await catalog.history.change({ id, within, page, pageSize, after })
      if (!found) throw changeNotFound(id)
      return {
        ...describeChange(found.change),
        files: found.files.map(({ path, before, after }) => ({
          path,
          before: describeState(before),
          after: describeState(after),
          ...forgottenIf(!before && !after),
        })),
        pagination: paginate(request.query, found.total),
        next: nextOf(request, reply, found.next),
      }
    },
  )
}

const revertChangeSchema = {
  operationId: 'revertChange',
  summary: 'Take back what one change did, and nothing else',
  description:
    'All or nothing; a change of its own, which can be reverted too. 409 `revert_conflict` names up to ten `paths` that were changed since. Needs no body.',
  tags,
  params: AtChange,
  body: z
    .strictObject({
      overwrite: z
        .boolean('must be true or false')
        .optional()
        .meta({ description: 'also files that were changed since; default: false' }),
    })
    .nullish()
    .meta({ examples: [{ overwrite: true }] }),
  errors: [
    changeNotFound(change.id),
    revertConflict(change.paths),
    historyGone(),
    pathConflict('notes'),
    insufficientStorage(),
    quotaExceeded(10_737_418_240),
  ],
  responses: { 200: { description: 'The new change' } },
  response: { 200: Change },
}

function revertChange(app: App, catalog: Catalog) {
  app.post(
    '/api/changes/:id/revert',
    { config: { access: 'editor', folders: 'handler' }, schema: revertChangeSchema },
    async (request) => {
      const { overwrite = false } = request.body ?? {}
      const { id } = request.params
      const { folders: within } = callerOf(request)
      const seen = within && (await catalog.history.change({ id, within, page: 1, pageSize: 1 }))
      if (within && !seen) throw changeNotFound(id)
      return describeChange(await catalog.revert(id, overwrite, actorOf(request)))
    },
  )
}
