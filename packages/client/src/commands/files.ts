import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { FileClient } from '../file-client.ts'
import { pages, unwrap } from '../responses.ts'
import { eventOptions, printEvents } from './events.ts'
import { type Command, runProgram } from './run-program.ts'
import { formatTable, UsageError } from './terminal.ts'
import { deploy, download, history, revert, rollback, sync, treeOptions, upload } from './trees.ts'

const usage = `Files of the static service.

  files login --sso                            log in by single sign-on, in a browser
  files list [directory/]                      list files, of one directory if named
  files put <file> [path]                      store a file; a path ending in / is a directory
  files remove <path>                          delete a file
  files sync <directory> <prefix/> [--delete] [--dry-run]
                                               as deploy, but removes nothing without --delete
  files deploy <directory> <prefix/> [--version v] [--changelog text] [--dry-run]
                                               make prefix/ an exact copy, in one step; sends only what is missing
  files download <prefix/> <directory> [--at v]
                                               write prefix/ below a directory, as it is or was
  files rollback <prefix/> [--to v] [--dry-run]
                                               make prefix/ what it was before its last change, or at v
  files history <path>                         list every state of a path
  files revert <change> [--overwrite]          take back what one change did
  files events [--follow] [--types t,…] [--after id]
                                               print past events, one JSON object a line; with --follow
                                               future ones, across lost connections

v is a version, the number of a change or an RFC 3339 instant.

FILES_URL (http://127.0.0.1:3002), FILES_TOKEN, or FILES_USERNAME and FILES_PASSWORD.
None of them is needed after login --sso, or in GitHub and GitLab jobs that a trust admits.
Exit status: 0 done, 1 failed or wrong arguments.
`

const options = {
  sso: { type: 'boolean' },
  ...treeOptions,
  ...eventOptions,
} as const

type FileCommand = Command<FileClient, typeof options>

const list: FileCommand = async ({ api }, [prefix]) => {
  const read = (position: { after?: string }) =>
    unwrap(api.GET('/api/files', { params: { query: { ...position, page_size: 200, ...(prefix && { prefix }) } } }))
  for await (const { files } of pages(read))
    process.stdout.write(formatTable(files.map(({ size, updated_at, path }) => [size, updated_at, path])))
}

const put: FileCommand = async (client, [source = '', target = '']) => {
  const path = target === '' || target.endsWith('/') ? target + basename(source) : target
  await access(source, constants.R_OK) // Otherwise the error does not name the file.
  if (!(await stat(source)).isFile())
    throw new UsageError(`${source} is not a file: store a directory with sync or deploy.`)
  process.stdout.write(`${(await upload(client, path, source)).url}\n`)
}

const remove: FileCommand = async (client, [path = '']) => {
  await unwrap(client.api.DELETE('/api/files/{path}', { params: { path: { path } } }))
}

await runProgram('files', {
  usage,
  port: 3002,
  options,
  open: (settings) => new FileClient(settings),
  commands: {
    list,
    put,
    remove,
    sync,
    deploy,
    download,
    rollback,
    history,
    revert,
    events: ({ api }, _, flags) => printEvents((query) => api.GET('/api/events', query), flags),
  },
})
