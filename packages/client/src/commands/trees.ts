import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, openAsBlob } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { FileClient, StoredFile } from '../file-client.ts'
import { ProblemError, pages, unwrap } from '../responses.ts'
import { partBytes } from '../resumable-upload.ts'
import { type Command, readInteger } from './run-program.ts'
import { CommandError, formatTable, makeDirectory, openProgressBar, UsageError } from './terminal.ts'

// Commands on a whole folder: `files deploy`, `sync`, `download`, `rollback`, `history` and `revert`.

export const treeOptions = {
  delete: { type: 'boolean', default: false },
  'dry-run': { type: 'boolean', default: false },
  overwrite: { type: 'boolean', default: false },
  version: { type: 'string' },
  changelog: { type: 'string' },
  at: { type: 'string' },
  to: { type: 'string' },
} as const

type TreeCommand = Command<FileClient, typeof treeOptions>

/** Replaces a directory of the store by a local one, atomically. Sends only contents that the store lacks. */
export const deploy: TreeCommand = (client, words, flags) => put(client, words, { ...flags, mode: 'replace' })

/** As `deploy`, but removes nothing without `--delete`, and uploads large files beforehand, each resumably. */
export const sync: TreeCommand = (client, words, flags) =>
  put(client, words, { ...flags, mode: flags.delete ? 'replace' : 'merge', uploadsLarge: true })

type Flags = Parameters<TreeCommand>[2] & { mode: 'replace' | 'merge'; uploadsLarge?: boolean }

async function put(client: FileClient, [source = '', prefix]: string[], flags: Flags) {
  const { version, changelog, mode, uploadsLarge, 'dry-run': dryRun } = flags
  const path = readPrefix(prefix)
  const files = await readFiles(source)
  const named = Object.fromEntries(files.map(({ path: name, sha256 }) => [name, { sha256 }]))
  const lost = files.find(({ path: name, sha256 }) => named[name]?.sha256 !== sha256)
  if (lost) throw new CommandError(`${lost.path}: two files have this name, in two spellings of Unicode; rename one`)
  const manifest = JSON.stringify({ files: named })
  const byDigest = new Map(files.map((file) => [file.sha256, file]))
  const query = { version, changelog, mode, dry_run: dryRun }
  if (dryRun) await printPreview(client, path, files, mode)
  for (;;) {
    try {
      return printResult(client, await putTree(client, path, { manifest, query }))
    } catch (error) {
      if (!(error instanceof ProblemError) || error.code !== 'contents_missing') throw error
      const missing = error.missing.flatMap((digest) => byDigest.get(digest) ?? [])
      if (missing.length === 0) throw error
      if (dryRun) return
      const large = uploadsLarge ? missing.filter(({ size }) => size > partBytes) : []
      for (const { path: name, source: file, sha256 } of large) {
        await upload(client, path + name, file)
        byDigest.delete(sha256) // Missing again: the file has changed since it was read.
      }
      if (large.length === 0) await send(client, missing)
    }
  }
}

function readPrefix(prefix: string | undefined): string {
  if (prefix?.endsWith('/')) return prefix === '/' ? '' : prefix.replace(/^\//, '')
  throw new UsageError('Name a directory of the store, with a slash at its end; / is all of it.')
}

interface LocalFile {
  /** Path below the directory. */
  path: string
  /** Path on this machine. */
  source: string
  size: number
  sha256: string
}

/** The regular files below a directory; symbolic links are not followed. */
export async function readFiles(directory: string, prefix = ''): Promise<LocalFile[]> {
  const found: LocalFile[] = []
  // Not the recursive `readdir`, which follows links to directories, even in cycles.
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const source = join(directory, entry.name)
    const path = prefix + entry.name.normalize('NFC')
    if (entry.isDirectory()) found.push(...(await readFiles(source, `${path}/`)))
    if (!entry.isFile()) continue
    const hash = createHash('sha256')
    for await (const chunk of createReadStream(source)) hash.update(chunk)
    found.push({ path, source, size: (await stat(source)).size, sha256: hash.digest('hex') })
  }
  return found
}

const putTree = ({ api }: FileClient, path: string, { manifest, query }: { manifest: string; query: object }) =>
  unwrap(
    api.PUT('/api/trees/{path}', {
      params: { path: { path }, query },
      body: new Blob([manifest]),
      bodySerializer: (body) => body,
    }),
  )

/** Stores a file, with a progress bar. */
export async function upload(client: FileClient, path: string, source: string): Promise<StoredFile> {
  const content = await openAsBlob(source)
  using bar = openProgressBar(content.size)
  return await client.upload(path, content, { onProgress: bar.show })
}

async function send({ api }: FileClient, files: LocalFile[]) {
  using bar = openProgressBar(files.reduce((sum, { size }) => sum + size, 0))
  let done = 0
  const waiting = [...files]
  const work = async () => {
    for (let file = waiting.pop(); file; file = waiting.pop()) {
      const { path, source, sha256, size } = file
      const body = await openAsBlob(source)
      const params = { path: { sha256 } }
      await unwrap(api.PUT('/api/contents/{sha256}', { params, body, bodySerializer: () => body })).catch((error) => {
        waiting.length = 0 // No request of the others is begun.
        throw error instanceof ProblemError ? new CommandError(`${path}: ${error.message} (${error.code})`) : error
      })
      done += size
      bar.show(done)
    }
  }
  await Promise.all(Array.from({ length: parallel }, work))
}

const parallel = 8

type TreeResult = Omit<Awaited<ReturnType<typeof putTree>>, 'prefix' | 'files' | 'bytes_received'>

async function printResult({ api }: FileClient, { change, ...counts }: TreeResult) {
  if (change) {
    const path = { id: change.id }
    const read = (position: { after?: string }) =>
      unwrap(api.GET('/api/changes/{id}', { params: { path, query: { ...position, page_size: 200 } } }))
    for await (const { files } of pages(read))
      for (const { path: name, before, after } of files) printChanged(name, before, after)
  }
  const { added, replaced, removed, unchanged } = counts
  const number = change ? `change ${change.id}: ` : ''
  process.stdout.write(`${number}${added} added, ${replaced} replaced, ${removed} removed, ${unchanged} unchanged\n`)
}

const printChanged = (path: string, before: unknown, after: unknown) =>
  process.stdout.write(`${before === null ? '+' : after === null ? '-' : '~'} ${path}\n`)

/** Prints what a change will do: the service names files only once they are changed. */
async function printPreview({ api }: FileClient, path: string, files: LocalFile[], mode: Flags['mode']) {
  const request = { params: { path: { path } }, headers: { accept: 'application/json' } }
  const { data, error, response } = await api.GET('/api/trees/{path}', request)
  if (!response.ok && response.status !== 404) throw ProblemError.of(error, response) // 404: it has no files yet.
  const before = data && 'files' in data ? data.files : {}
  const after = new Map(files.map((file) => [file.path, file.sha256]))
  for (const name of new Set([...after.keys(), ...(mode === 'merge' ? [] : Object.keys(before))].toSorted())) {
    const [old = null, wanted = null] = [before[name]?.sha256, after.get(name)]
    if (old !== wanted) printChanged(path + name, old, wanted)
  }
}

/** Extracts a directory of the store, present or past, into a local one. Needs the program tar. */
export const download: TreeCommand = async (client, [prefix, target = ''], { at }) => {
  const path = readPrefix(prefix)
  const params = { path: { path }, query: at === undefined ? {} : { at } }
  const { response, error } = await client.api.GET('/api/trees/{path}', { params, parseAs: 'stream' })
  if (!response.ok || !response.body) throw ProblemError.of(error, response)
  makeDirectory(target)
  const tar = spawn('tar', ['-xf', '-', '-C', target], { stdio: ['pipe', 'inherit', 'inherit'] })
  const ended = once(tar, 'close')
  // Cast: the stream types of undici and Node differ.
  await pipeline(Readable.fromWeb(response.body as never), tar.stdin)
  const [code] = await ended
  if (code !== 0) throw new CommandError(`tar has failed with status ${code}`)
}

/** Restores a directory to its state before its last change, or at a version, a change or an instant. */
export const rollback: TreeCommand = async (client, [prefix], { to, 'dry-run': dry_run }) => {
  const path = readPrefix(prefix)
  const at = to ?? (await changeBefore(client, path))
  const manifest = JSON.stringify({ from: path, at })
  await printResult(client, await putTree(client, path, { manifest, query: { dry_run } }))
}

async function changeBefore({ api }: FileClient, prefix: string): Promise<string> {
  const { changes } = await unwrap(api.GET('/api/changes', { params: { query: { prefix, page_size: 1 } } }))
  if (!changes[0]) throw new CommandError(`Nothing has changed below ${prefix}.`)
  return String(changes[0].id - 1)
}

export const history: TreeCommand = async ({ api }, [path = '']) => {
  const read = (position: { after?: string }) =>
    unwrap(api.GET('/api/history', { params: { query: { ...position, path, page_size: 200 } } }))
  for await (const { history: states } of pages(read)) {
    const rows = states.map(({ change, at, by, action, sha256, size }) => [
      change,
      at,
      by,
      action,
      size ?? '-',
      sha256?.slice(0, 12) ?? 'no file',
    ])
    process.stdout.write(formatTable(rows))
  }
}

export const revert: TreeCommand = async (client, [change = ''], { overwrite }) => {
  const made = await unwrap(
    client.api.POST('/api/changes/{id}/revert', {
      params: { path: { id: readInteger('A change', change) } },
      body: { overwrite },
    }),
  )
  await printResult(client, { ...made, unchanged: 0, change: made })
}
