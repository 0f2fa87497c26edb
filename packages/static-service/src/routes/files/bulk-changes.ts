import { type Caller, hasRole } from '@domains-and-files/auth'
import { type App, answers, operations } from '@domains-and-files/http'
import { z } from 'zod'
import { type DirectoryMove, type FileMove, isIntoItself, movedPath } from '../../catalog/changes/file-changes.ts'
import type { Removed } from '../../catalog/changes/group.ts'
import { readTreePages } from '../../catalog/history/past-files.ts'
import type { Actor } from '../../catalog/tables.ts'
import * as errors from '../../errors.ts'
import { nameOf } from '../../files/file-path.ts'
import { actorOf, requireWrittenDirectory, requireWrittenPath } from '../callers.ts'
import { file } from '../schemas.ts'
import { detectType } from '../trees/receive-tree.ts'
import { checkDistinct, type FileDependencies } from './store-files.ts'

// A thousand paths of 1,024 bytes in JSON, some of their characters escaped.
const bodyLimit = 4_194_304
/** Maximum files of a change in one transaction. */
const maxFiles = 20_000

const changeErrors = [errors.invalidPath('a segment is empty'), errors.insufficientStorage()]

const Move = z
  .strictObject({
    from: z.string().describe('path of a file, or of a directory with a trailing slash'),
    to: z.string().describe('new path, of the same kind'),
    overwrite: z.boolean().optional().describe('replace files that exist at the new paths; default: false'),
  })
  .refine(({ from, to }) => from.endsWith('/') === to.endsWith('/'), {
    path: ['to'],
    error: 'must end in a slash if and only if from does',
  })
  .meta({ id: 'Move', examples: [{ from: 'notes/', to: 'archive/notes/' }] })

const moveErrors = [
  ...changeErrors,
  errors.reservedPath('tree'),
  errors.fileNotFound(file.path),
  errors.directoryNotFound('notes/old'),
  errors.pathConflict('notes'),
  errors.targetExists([file.path]),
  errors.moveIntoItself('notes/old'),
]

const Moved = z.object({ files_moved: z.int() })

function readMove(caller: Caller, { from, to, overwrite = false }: z.infer<typeof Move>) {
  const isDirectory = from.endsWith('/')
  const end = isDirectory ? requireWrittenDirectory : requireWrittenPath
  return { from: end(caller, from), to: end(caller, to), overwrite, isDirectory }
}

async function readMoves(caller: Caller, written: z.infer<typeof Move>[], stores: FileDependencies) {
  const moves: DirectoryMove[] = []
  for (const each of written) {
    const move = readMove(caller, each)
    if (move.isDirectory) moves.push(...(await movesBelow(move, stores)))
    else moves.push(move)
    if (moves.length > maxFiles) throw errors.treeTooLarge(`${maxFiles} files`)
  }
  checkDistinct(moves.map(({ from }) => from))
  checkDistinct(moves.map(({ to }) => to))
  return moves
}

// Keeps files that are stored there meanwhile.
async function movesBelow(move: DirectoryMove, { catalog }: FileDependencies) {
  const { from: directory, overwrite } = move
  if (isIntoItself(move)) throw errors.moveIntoItself(move.to)
  const moves: DirectoryMove[] = []
  for await (const page of readTreePages((query) => catalog.reads.filesAt(query), { directory })) {
    for (const { path } of page) moves.push({ from: path, to: movedPath(path, move), overwrite })
    if (moves.length > maxFiles) break
  }
  if (moves.length === 0) throw errors.directoryNotFound(directory)
  return moves
}

// A new name may change the media type, which may depend on the first bytes.
async function moveAll(moves: DirectoryMove[], actor: Actor, { catalog, store }: FileDependencies): Promise<number> {
  for (;;) {
    const typed: FileMove[] = []
    for (const { from, to, overwrite } of moves) {
      const isRenamed = nameOf(to) !== nameOf(from)
      typed.push({ from, to, overwrite, type: isRenamed ? await typeAt(to, from) : undefined })
    }
    const moved = await catalog.writes.moveFiles({ moves: typed, actor })
    if (moved !== undefined) return moved // Else a file was replaced meanwhile.
  }

  async function typeAt(to: string, from: string) {
    const row = await catalog.find(from)
    if (!row) throw errors.fileNotFound(from)
    return { digest: row.digest, ...(await detectType(store, nameOf(to), row.digest)) }
  }
}

const Deletion = z
  .strictObject({
    paths: z.array(z.string()).min(1, 'must have 1 to 1000 paths').max(1000, 'must have 1 to 1000 paths').optional(),
    prefix: z
      .string()
      .min(1, 'must name a directory; / is all files')
      .optional()
      .describe('a directory: every file below it; `/` is all files'),
    forget: z
      .boolean()
      .optional()
      .describe(
        'admins: also all the past of the `paths`, which may have been deleted before; their bytes leave the disk within seconds, and cannot be brought back',
      ),
  })
  .refine(({ paths, prefix }) => (paths === undefined) !== (prefix === undefined), {
    error: 'must have either paths or prefix',
  })
  .refine(({ forget, paths }) => !forget || paths, {
    path: ['forget'],
    error: 'needs paths',
  })
  .meta({ id: 'Deletion', examples: [{ paths: [file.path] }] })

const routes = operations({
  // `move` and `delete` are no reserved names: other methods of these paths are about files.
  shared: { access: 'editor', folders: 'handler', tags: ['files'], otherMethods: '/api/files/*' },
  moveFiles: {
    summary: 'Move a file or a directory, all or nothing',
    description:
      'A directory is merged into an existing one. Records keep `created_at`; `updated_at` is the time of the move. More than 20,000 files are moved in slices, each whole.',
    body: Move,
    errors: moveErrors,
    ...answers(200, 'Moved', Moved),
  },
  moveFileBatch: {
    summary: 'Move several files or directories, all or nothing',
    description:
      'One change of up to 20,000 files. A 409 because of existing files names them in `paths`. Files that are stored in one of the directories meanwhile stay there.',
    body: z.strictObject({ moves: z.array(Move).min(1).max(maxFiles) }).meta({ id: 'MoveBatch' }),
    errors: [...moveErrors, errors.duplicatePath(file.path), errors.treeTooLarge('20000 files')],
    ...answers(200, 'Moved', Moved),
  },
  deleteFiles: {
    summary: 'Delete several files or a directory, all or nothing',
    description:
      'Send either `paths` or `prefix`. After the response no GET returns the files. More than 20,000 files are deleted in slices, each whole; files that are stored meanwhile stay.',
    body: Deletion,
    errors: [
      ...changeErrors,
      errors.duplicatePath(file.path),
      errors.fileNotFound(file.path),
      errors.directoryNotFound('notes/old'),
      errors.forgetNeedsAdmin(),
    ],
    ...answers(
      200,
      'Deleted',
      z.object({
        files_deleted: z.int(),
        bytes_freed: z
          .int()
          .describe(
            'of contents that no other file has; they leave the disk when the history does not need them any more. For callers limited to folders: of the files',
          ),
      }),
    ),
  },
})

export function registerBulkRoutes(app: App, dependencies: FileDependencies) {
  const { catalog, store } = dependencies
  app.post('/api/files/move', routes.moveFiles, async (request) => {
    const move = readMove(request.caller, request.body)
    const actor = actorOf(request)
    const moved = move.isDirectory ? catalog.moveDirectory(move, actor) : moveAll([move], actor, dependencies)
    return { files_moved: await moved }
  })
  app.post('/api/files/move/batch', { ...routes.moveFileBatch, bodyLimit }, async (request) => {
    const moves = await readMoves(request.caller, request.body.moves, dependencies)
    return { files_moved: await moveAll(moves, actorOf(request), dependencies) }
  })
  app.post('/api/files/delete', { ...routes.deleteFiles, bodyLimit }, async (request) => {
    const [caller, actor] = [request.caller, actorOf(request)]
    const { paths: written = [], prefix, forget } = request.body
    if (forget && !hasRole(caller, 'admin')) throw errors.forgetNeedsAdmin()
    const paths = written.map((text) => requireWrittenPath(caller, text))
    checkDistinct(paths)
    if (prefix !== undefined) {
      const directory = requireWrittenDirectory(caller, prefix)
      return describe(await catalog.removeBelow(directory, actor), caller)
    }
    if (!forget) return describe(await catalog.writes.remove({ paths, actor }), caller)
    const { freed, ...removed } = await catalog.writes.forget({ paths, actor })
    // It is forgotten: what a process could not erase is erased by the next start, or by the sweep.
    void store.erase(freed).catch((error) => request.log.error({ err: error }, 'contents not erased'))
    return describe(removed, caller)
  })
}

const describe = ({ files, bytes, bytesFreed }: Removed, { folders }: Caller) => ({
  files_deleted: files,
  bytes_freed: folders ? bytes : bytesFreed,
})
