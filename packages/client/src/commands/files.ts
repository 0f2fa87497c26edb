import { constants, openAsBlob } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { FileClient } from '../file-client.ts'
import { pages, unwrap } from '../responses.ts'
import { retry } from '../resumable-upload.ts'
import { wait } from '../session.ts'
import { eventOptions, printEvents } from './events.ts'
import { type Command, runProgram } from './run-program.ts'
import { listLocalFiles, planSync } from './sync-plan.ts'
import { formatTable, openProgressBar, UsageError } from './terminal.ts'
import { deploy, download, history, revert, rollback, treeOptions } from './trees.ts'

const usage = `Files of the static service.

  files login --sso                            log in by single sign-on, in a browser
  files list [directory/]                      list files, of one directory if named
  files put <file> [path]                      store a file; a path ending in / is a directory
  files remove <path>                          delete a file
  files sync <directory> <prefix/> [--delete] [--dry-run]
                                               upload what is new or changed; --delete removes what is not there
  files deploy <directory> <prefix/> [--version v] [--changelog text] [--dry-run]
                                               make prefix/ what the directory is, in one step; sends only what is missing
  files download <prefix/> <directory> [--at v]
                                               write prefix/ below a directory, as it is or was
  files rollback <prefix/> [--to v] [--dry-run]
                                               make prefix/ what it was before its last change, or at v
  files history <path>                         list every state of a path
  files revert <change> [--overwrite]          take back what one change did
  files events [--follow] [--types t,…] [--after id]
                                               print what has happened, one JSON object a line; with --follow what
                                               happens from now on, through breaks of the connection

v is a version, the number of a change or an RFC 3339 instant.

FILES_URL (http://127.0.0.1:3002), FILES_TOKEN, or FILES_USERNAME and FILES_PASSWORD.
None of them after login --sso, and in GitHub and GitLab jobs that a trust admits.
`

const options = {
  sso: { type: 'boolean' },
  delete: { type: 'boolean' },
  ...treeOptions,
  ...eventOptions,
} as const

type FileCommand = Command<FileClient, typeof options>

const list: FileCommand = async (client, [directory]) => {
  for await (const { files } of filesBelow(client, directory)) {
    process.stdout.write(formatTable(files.map(({ size, updated_at, path }) => [size, updated_at, path])))
  }
}

const put: FileCommand = async (client, [source = '', target = '']) => {
  const path = target === '' || target.endsWith('/') ? target + basename(source) : target
  await access(source, constants.R_OK) // Otherwise the error does not name the file.
  if (!(await stat(source)).isFile())
    throw new UsageError(`${source} is not a file: store a directory with sync or deploy.`)
  const content = await openAsBlob(source)
  const bar = openProgressBar(content.size)
  const record = await client.upload(path, content, { onProgress: bar.show })
  bar.end()
  process.stdout.write(`${record.url}\n`)
}

const remove: FileCommand = async (client, [path = '']) => {
  await unwrap(client.api.DELETE('/api/files/{path}', { params: { path: { path } } }))
}

const sync: FileCommand = async (client, [directory = '', prefix = ''], flags) => {
  if (!prefix.endsWith('/')) throw new UsageError('Name a prefix that ends in /.')
  const stored = new Map<string, { size: number; sha256: string }>()
  for await (const { files } of filesBelow(client, prefix)) {
    for (const { path, size, sha256 } of files) stored.set(path, { size, sha256 })
  }
  const plan = await planSync(await listLocalFiles(directory, prefix), stored)
  const removed = flags.delete ? plan.remove : []
  if (flags['dry-run']) {
    for (const { path } of plan.upload) process.stdout.write(`upload ${path}\n`)
    for (const path of removed) process.stdout.write(`delete ${path}\n`)
    return
  }
  const bar = openProgressBar(plan.upload.reduce((sum, { size }) => sum + size, 0))
  let done = 0
  for (const { path, source, size } of plan.upload) {
    const onProgress = (sent: number) => bar.show(done + sent)
    await retry({ sleep: wait }, async () => client.upload(path, await openAsBlob(source), { onProgress }))
    done += size
  }
  bar.end()
  for (let at = 0; at < removed.length; at += 1000) {
    const paths = removed.slice(at, at + 1000)
    await unwrap(client.api.POST('/api/files/delete', { body: { paths } }))
  }
  process.stdout.write(`${plan.upload.length} uploaded, ${removed.length} deleted, ${plan.unchanged} unchanged\n`)
}

/** Pages of the files below a directory; of all files without one. */
const filesBelow = ({ api }: FileClient, prefix?: string) =>
  pages((position) => {
    const query = { ...position, page_size: 200, ...(prefix ? { prefix } : {}) }
    return unwrap(api.GET('/api/files', { params: { query } }))
  })

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
