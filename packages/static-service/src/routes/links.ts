import { type Auth, allowsPath, type Caller, hasRole, type Rights } from '@domains-and-files/auth'
import { type App, answers, listPage, listSchema, operations, pageQuery } from '@domains-and-files/http'
import { BackgroundTask } from '@domains-and-files/persistence'
import { z } from 'zod'
import type { Catalog } from '../catalog/catalog.ts'
import { directoryNotFound, fileNotFound, invalidPath, rangeNotSatisfiable } from '../errors.ts'
import { type Link, type Links, linkNotFound, tooManyLinks } from '../sharing/links.ts'
import { requireWrittenDirectory, requireWrittenPath } from './callers.ts'
import { file, Path, Username } from './schemas.ts'
import { documentRawRoute } from './static.ts'

interface Dependencies extends Pick<Auth, 'findCaller'> {
  links: Links
  catalog: Catalog
  /** Of URLs; absent: they are paths. */
  base: string | undefined
}

const exampleId = '0d6f3a5e-8e0f-4f0a-9f6b-3c1c1d9f1a20'
const exampleToken = 'q3VnV0x2bGk1c2R0eW9rZA'

const LinkRecord = z
  .object({
    id: z.string().meta({ examples: [exampleId] }),
    path: Path.describe('of a file, or of a folder with a trailing slash'),
    name: z.nullable(z.string()).meta({ examples: [null] }),
    expires_at: z.iso.datetime(),
    downloads_left: z.int().nullable().describe('null: not limited'),
    by: Username,
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Link' })

const CreatedLink = LinkRecord.extend({
  url: z.string().meta({
    description: 'shown only now: whoever has it reads the files',
    examples: [`/l/${exampleToken}`],
  }),
}).meta({ id: 'CreatedLink' })

const NewLink = z
  .strictObject({
    path: z.string().describe('path of a file, or of a folder with a trailing slash'),
    expires_in: z.int().min(60).max(31_536_000).optional().describe('seconds; default 7 days'),
    downloads: z.int().min(1).max(10_000).optional().describe('absent: not limited'),
    name: z
      .string()
      .trim()
      .min(1)
      .max(100)
      .refine((text) => !/[\p{Cc}\p{Cs}]/u.test(text), 'must have no control characters')
      .optional()
      .describe('for the list, and the title of the page of a folder'),
  })
  .meta({ id: 'NewLink', examples: [{ path: file.path, downloads: 3 }] })

const tags = ['access']

const routes = operations({
  shared: { access: 'viewer', folders: 'none', tags },
  createLink: {
    access: 'editor',
    folders: 'handler',
    summary: 'Create a link to a file or folder',
    description:
      'Everybody who has its URL reads what is there, private or not, until the link expires, is deleted or used up, or you may not read it any more.',
    body: NewLink,
    errors: [
      invalidPath('a segment is empty'),
      fileNotFound(file.path),
      directoryNotFound('notes/old'),
      tooManyLinks(),
    ],
    ...answers(201, 'The link, its URL shown only now', CreatedLink),
  },
  listLinks: {
    summary: 'List links',
    description: 'Your own, newest first; admins see all. None of removed users, and no URLs: these are not stored.',
    querystring: z.strictObject({
      ...pageQuery(50, 200),
      path: z
        .string()
        .refine((text) => !text.includes('\0'), 'must not contain U+0000')
        .transform((text) => text.replace(/^\//, '').normalize('NFC'))
        .optional()
        .meta({ type: 'string', description: 'only links to this file or folder' }),
    }),
    ...answers(200, 'The links that have not expired', listSchema('LinkList', 'links', LinkRecord)),
  },
  deleteLink: {
    summary: 'Delete a link',
    description: 'Your own; an admin may delete any. It stops working at once, at every replica.',
    params: z.strictObject({ id: z.string().meta({ examples: [exampleId] }) }),
    errors: [linkNotFound()],
    ...answers(204, 'Deleted'),
  },
})

/** Links to files and folders, and the documentation of what they lead to. */
export function registerLinkRoutes(app: App, dependencies: Dependencies) {
  const { links, catalog, findCaller, base = '' } = dependencies
  app.post('/api/links', routes.createLink, async ({ body, caller, log }, reply) => {
    const { expires_in: lifetimeS = 604_800, downloads: downloadsLeft = null, name = null } = body
    const { id: maker, username: by } = caller
    const path = await requireReadable(catalog, caller, body.path)
    const { link, token } = await links.create({ path, name, lifetimeS, maker, by, downloadsLeft })
    log.info({ link_id: link.id, path, user: by }, 'link created')
    reply.header('cache-control', 'no-store')
    return { ...describeLink(link), url: `${base}/l/${token}` }
  })
  app.get('/api/links', routes.listLinks, async ({ caller, query }) => {
    const by = hasRole(caller, 'admin') ? undefined : caller.username
    const seen = (await links.list({ by, path: query.path })).filter((link) => maySee(caller, link))
    const makers = new Map<string, Caller | undefined>()
    for (const maker of new Set(seen.map((link) => link.maker))) makers.set(maker, await findCaller(maker))
    const alive = seen.filter(({ maker }) => makers.get(maker))
    return listPage('links', alive, query, describeLink)
  })
  app.delete('/api/links/:id', routes.deleteLink, async ({ caller, log, params }) => {
    await links.remove(params.id, (link) => maySee(caller, link))
    log.info({ link_id: params.id, user: caller.username }, 'link deleted')
  })
  documentLinks(app)
  recordUsedUp(app, dependencies)
}

// Links and events may be in different databases: after a failure or a crash, a later run records them.
function recordUsedUp(app: App, { links, catalog }: Dependencies) {
  const recording = new BackgroundTask({
    run: () => links.recordUsedUp(catalog.writes.recordUsedUp),
    intervalMs: 10_000,
    onError: () => undefined, // The database does not answer, which its own probe logs.
  })
  links.onUsedUp = () => void recording.runAgain()
  app.addHook('onClose', () => recording.close())
}

/** `LinkHandler` answers. */
function documentLinks(app: App) {
  const token = z.string().meta({ description: 'of the link', examples: [exampleToken] })
  const rest = z.string().meta({ description: 'path below the folder', examples: ['hello.txt'] })
  const schema = {
    summary: 'The file of a link, or a page that lists its folder',
    description:
      'As `/static/{path}`, but never cached. A GET from the first byte of a file is a download; ranges that begin later belong to one of the last hour.',
    tags,
    querystring: z.looseObject({ download: z.string().optional() }),
    errors: [linkNotFound(), rangeNotSatisfiable(file.size)],
    responses: {
      200: { description: 'The file, or the page', content: '*/*' },
      206: { description: 'The requested ranges', content: '*/*' },
    },
  }
  const [link, below] = [z.object({ token }), z.object({ token, '*': rest })]
  documentRawRoute(app, '/l/:token', { ...schema, operationId: 'openLink', params: link })
  documentRawRoute(app, '/l/:token/*', { ...schema, operationId: 'openLinkBelow', params: below })
}

/** @throws {HttpError} `file_not_found`, `directory_not_found`, or what is wrong with the path. */
async function requireReadable(catalog: Catalog, caller: Caller, written: string): Promise<string> {
  if (!written.endsWith('/')) {
    const path = requireWrittenPath(caller, written)
    if (!(await catalog.find(path))) throw fileNotFound(path)
    return path
  }
  const prefix = requireWrittenDirectory(caller, written)
  const { total } = await catalog.reads.list({ prefix, sort: 'path', page: 1, page_size: 1 })
  if (prefix === '' || total === 0) throw directoryNotFound(prefix)
  return `${prefix}/`
}

/** Its own links, and an admin those of all, into its folders. */
export const maySee = (caller: Rights & { username?: string }, { by, path }: Link) =>
  (by === caller.username || hasRole(caller, 'admin')) && allowsPath(caller, path)

export const describeLink = ({ id, path, name, by, ...link }: Link) => ({
  id,
  path,
  name,
  by,
  expires_at: new Date(link.expiresAt).toISOString(),
  downloads_left: link.downloadsLeft,
  created_at: new Date(link.createdAt).toISOString(),
})
