import { type App, afterQuery, answers, longListSchema, operations, pageOf, pageQuery } from '@domains-and-files/http'
import { z } from 'zod'
import type { Catalog } from '../../catalog/catalog.ts'
import { type DiffFile, utcOf } from '../../catalog/history/past-files.ts'
import { type ChangeEntry, changeActions } from '../../catalog/tables.ts'
import * as errors from '../../errors.ts'
import { actorOf } from '../callers.ts'
import { prefixQuery } from '../files/browse.ts'
import { change, file, noRoom, Path, Sha256, Size, Username } from '../schemas.ts'

export const ChangeId = z
  .string()
  .regex(/^[1-9][0-9]{0,14}$/, 'must be the number of a change')
  .transform(Number)
  .meta({ type: 'integer', minimum: 1, description: 'number of a change', examples: [change.id] })

/** Of a change, a file of it, or a state of a path. */
export const Forgotten = z
  .literal(true)
  .optional()
  .describe('files of it have been forgotten: only their paths are known')

export const Change = z
  .object({
    id: z.int().describe('grows with time; some numbers are no change'),
    at: z.iso.datetime(),
    by: Username,
    token: z.string().nullable().describe('name of the API token that was used'),
    request_id: z.string(),
    action: z.enum(changeActions),
    prefix: z.string().nullable().describe('the directory that the request named'),
    version: z.string().nullable().describe('the version recorded with the change'),
    added: z.int(),
    replaced: z.int(),
    removed: z.int(),
    bytes: z.int().describe('of the files stored; of those removed if none was stored'),
    paths: z.array(z.string()).describe('up to ten of the paths'),
    forgotten: Forgotten,
  })
  .meta({ id: 'Change', examples: [change] })

const { path, sha256, size } = file
const State = z.object({ sha256: Sha256, size: Size }).nullable()

export const ChangedFile = z.object({ path: Path, before: State, after: State, forgotten: Forgotten }).meta({
  id: 'ChangedFile',
  examples: [{ path, before: null, after: { sha256, size } }],
})

const describeState = (state: { digest: string; size: number } | null) =>
  state && { sha256: state.digest, size: state.size }

export const describeChanged = ({ path, before, after }: DiffFile): z.infer<typeof ChangedFile> => ({
  path,
  before: describeState(before),
  after: describeState(after),
  ...forgottenIf(!before && !after),
})

export const describeChange = ({ requestId, isForgotten, ...rest }: ChangeEntry): z.infer<typeof Change> => ({
  ...rest,
  request_id: requestId,
  ...forgottenIf(isForgotten),
})

export const forgottenIf = (isForgotten: boolean | number) => (isForgotten ? { forgotten: true as const } : {})

const AtChange = z.object({
  id: z
    .string()
    .transform((text) => {
      const { data } = ChangeId.safeParse(text)
      if (data === undefined) throw errors.changeNotFound(text)
      return data
    })
    .meta({ ...ChangeId.meta() }),
})

const routes = operations({
  shared: { access: 'viewer', folders: 'handler', tags: ['history'] },
  listChanges: {
    folders: 'prefix',
    optionalSlash: true,
    summary: 'List who changed which files, newest first',
    description:
      'Each request that changes files is one change. Callers limited to folders see those that changed nothing outside them.',
    querystring: z.strictObject({
      ...pageQuery(50, 200),
      ...afterQuery(z.int().positive()),
      prefix: prefixQuery('only changes of a file below this directory'),
      by: z.string('must be given once').optional().describe('only changes of this user'),
      action: z.enum(changeActions).optional().describe('only changes of this kind'),
      since: z.iso
        .datetime({ offset: true, error: 'must be a time such as 2027-01-15T09:30:00Z' })
        .transform(utcOf)
        .optional()
        .describe('only changes at this time or later'),
    }),
    ...answers(200, 'One page of the list', longListSchema('changes', Change)),
  },
  getChange: {
    summary: 'Read one change with its files',
    description: 'A page of the files, by path. `before` null: new; `after` null: removed.',
    params: AtChange,
    querystring: z.strictObject({ ...pageQuery(50, 200), ...afterQuery(z.string()) }),
    errors: [errors.changeNotFound(change.id)],
    ...answers(200, 'The change and a page of its files', Change.extend(longListSchema('files', ChangedFile).shape)),
  },
  revertChange: {
    access: 'editor',
    summary: 'Take back what one change did, and nothing else',
    description:
      'All or nothing; a change of its own, which can be reverted too. 409 `revert_conflict` names up to ten `paths` that were changed since. Needs no body.',
    params: AtChange,
    body: z
      .strictObject({
        overwrite: z.boolean().optional().describe('also files that were changed since; default: false'),
      })
      .nullish()
      .meta({ examples: [{ overwrite: true }] }),
    errors: [
      errors.changeNotFound(change.id),
      errors.revertConflict(change.paths),
      errors.historyGone(),
      errors.pathConflict('notes'),
      ...noRoom,
    ],
    ...answers(200, 'The new change', Change),
  },
})

export function registerChangeRoutes(app: App, catalog: Catalog) {
  app.get('/api/changes', routes.listChanges, async (request, reply) => {
    const found = await catalog.reads.changes({ ...request.query, within: request.caller.folders })
    return { changes: found.rows.map(describeChange), ...pageOf(request, reply, found) }
  })
  app.get('/api/changes/:id', routes.getChange, async (request, reply) => {
    const { id } = request.params
    const found = await catalog.reads.change({ ...request.query, id, within: request.caller.folders })
    if (!found) throw errors.changeNotFound(id)
    return {
      ...describeChange(found.change),
      files: found.rows.map(describeChanged),
      ...pageOf(request, reply, found),
    }
  })
  app.post('/api/changes/:id/revert', routes.revertChange, async (request) => {
    const { overwrite = false } = request.body ?? {}
    const { id } = request.params
    const { folders: within } = request.caller
    const seen = within && (await catalog.reads.change({ id, within, page: 1, page_size: 1 }))
    if (within && !seen) throw errors.changeNotFound(id)
    return describeChange(await catalog.writes.revert({ id, overwrite, actor: actorOf(request) }))
  })
}
