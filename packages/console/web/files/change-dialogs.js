import { get, send, session } from '../api/client.js'
import { explain } from '../api/transport.js'
import { html, nothing } from '../core/view.js'
import { confirmDialog, openDialog } from '../ui/dialog.js'
import { checkbox, formField } from '../ui/form.js'
import { formatBytes, formatCount } from '../ui/format.js'
import { attempt, toast } from '../ui/states.js'
import { announceFilesChanged, currentPath, ownFolders } from './content.js'
import { directoriesIn, nameOf, nextName, parentOf } from './paths.js'

/**
 * @typedef {Api.FileRecord | Api.DirectoryNode} Entry
 * @typedef {{ from: string, to: string, overwrite?: boolean }} Move
 */

/**
 * Moves or renames, as one change. One entry: its whole new path is asked for. Several: the folder that they go to. The
 * caller announces the change.
 * @param {Entry[]} entries
 * @returns {Promise<Move[] | undefined>} what was moved; undefined: it was left undecided
 */
export async function moveDialog(entries) {
  const { path: only = '' } = entries.length === 1 ? (entries[0] ?? {}) : {}
  const form = { target: only.replace(/\/$/, '') || currentPath().folder }
  const targetOf = (/** @type {string} */ from) => {
    const names = only ? [form.target] : [form.target, nameOf(from)]
    return `${names.filter(Boolean).join('/')}${from.endsWith('/') ? '/' : ''}`
  }
  /** @type {Map<string, string[]>} */
  const offered = new Map()
  /** @type {Move[]} */
  let moved = []
  /** @type {string[]} */
  let published = []
  const isDone = await confirmDialog({
    title: only ? `Move or rename ${nameOf(only)}` : `Move ${formatCount(entries.length, 'item')}`,
    className: 'small',
    confirm: 'Move',
    body: (/** @type {() => void} */ update) => {
      const offer = () => void offerFolders(form.target, offered).then(update)
      if (offered.size === 0) offer()
      const folders = [...offered.values()].flat()
      const values = only ? folders.map((folder) => folder + nameOf(only)) : folders
      return html`
        ${formField(form, 'target', only ? 'New path' : 'To the folder', {
          hint: 'Folders are made as they are needed. Links to the old address stop working.',
          isRequired: only !== '',
          list: 'folders',
          onChange: offer,
        })}
        <datalist id="folders">${values.map((value) => html`<option value=${value}></option>`)}</datalist>`
    },
    action: async () => {
      form.target = form.target.replace(/^\/|\/$/g, '')
      const secret = await privateFiles(entries)
      moved = await moveAll(entries.map(({ path }) => ({ from: path, to: targetOf(path) })))
      published = await publicFiles(secret.flatMap((path) => pathAfter(moved, path) ?? []))
    },
  })
  if (published.length > 0)
    toast(html`Moved. Files that were private are public now, as ${published[0]} is. ${await undoOf('move')}`, 'warn')
  else if (isDone) toast(moved.length > 0 ? 'Moved' : 'Nothing was moved')
  return isDone ? moved : undefined
}

/**
 * Adds the folders that are next to what is typed, and those at the top.
 * @param {string} target
 * @param {Map<string, string[]>} offered by the folder that they are in
 */
async function offerFolders(target, offered) {
  const own = ownFolders()
  if (own) offered.set('', own)
  for (const prefix of ['', parentOf(`${target}.`)]) {
    if (offered.has(prefix)) continue
    offered.set(prefix, [])
    const query = { prefix, depth: 1 }
    const found = await get('files', '/api/files/tree', { query }).catch(() => undefined) // It may be new.
    offered.set(prefix, found ? directoriesIn(found.tree).map(({ path }) => path) : [])
  }
}

// Rules of access stay where they are when files move: whoever moves files learns whether that made them public.

/**
 * A private file of each folder, among its first ones, and of the files: these go to one folder, which has one rule.
 * @param {Entry[]} entries
 */
async function privateFiles(entries) {
  const isPrivate = (/** @type {Api.FileRecord} */ file) => file.public === false
  const found = [entries.find((entry) => 'sha256' in entry && isPrivate(entry))?.path]
  for (const { path } of entries) {
    if (!path.endsWith('/')) continue
    const { files } = await get('files', '/api/files', { query: { prefix: path, page_size: 200 } })
    found.push(files.find(isPrivate)?.path)
  }
  return found.filter((path) => path !== undefined)
}

/** @param {Move[]} moves @param {string} path @returns {string | undefined} undefined: it was skipped */
function pathAfter(moves, path) {
  const move = moves.find(({ from }) => from === path || (from.endsWith('/') && path.startsWith(from)))
  return move && move.to + path.slice(move.from.length)
}

/** Those of them that are public. The move is done, so that a failure is no reason to repeat it. @param {string[]} paths */
async function publicFiles(paths) {
  const files = await Promise.all(
    paths.map((path) => get('files', '/api/files/{path}', { params: { path } }).catch(() => undefined)),
  )
  return files.flatMap((file) => (file?.public ? file.path : []))
}

/**
 * Those paths that are still there. Those that somebody else moved or deleted are named in passing.
 * @param {unknown} error thrown again where none is missing
 * @param {string[]} paths
 */
function withoutMissing(error, paths) {
  const { status, body } = explain(error)
  const left = paths.filter((path) => status !== 404 || !body.paths?.includes(path))
  if (left.length === paths.length) throw error
  const missing = paths.filter((path) => !left.includes(path)).map(nameOf)
  const more = missing.length > named ? ` and ${missing.length - named} more` : ''
  toast(`Not there any more: ${missing.slice(0, named).join(', ')}${more}`, 'bad')
  return left
}

/** Moves all or nothing, once it is decided about the names that exist. @param {Move[]} moves @returns {Promise<Move[]>} */
async function moveAll(moves) {
  /** @type {Choice | undefined} */
  let choice
  let left = moves
  while (left.length > 0) {
    left = distinct(left)
    try {
      const [only] = left
      if (left.length > 1 || !only) await send('files', 'post', '/api/files/move/batch', { json: { moves: left } })
      else await send('files', 'post', '/api/files/move', { json: only }) // A directory of any size.
      return left
    } catch (error) {
      const { status, body } = explain(error)
      /** @type {string[]} */
      const paths = (status === 409 && body.paths) || []
      const isMet = (/** @type {Move} */ { to }) => paths.some((path) => `${path}/`.startsWith(to.replace(/\/?$/, '/')))
      const existing = left.filter(isMet)
      if (existing.length === 0) {
        const sources = left.map(({ from }) => from)
        const there = withoutMissing(error, sources)
        left = left.filter(({ from }) => there.includes(from))
        continue
      }
      choice ??= (await askAboutMoves(existing))?.choice ?? 'skip'
      left = left.flatMap((move) => {
        if (!existing.includes(move)) return move
        if (choice === 'skip') return []
        return choice === 'replace' ? { ...move, overwrite: true } : { ...move, to: nextName(move.to) }
      })
    }
  }
  return left
}

/** Two that would have one name are both kept. @param {Move[]} moves */
function distinct(moves) {
  /** @type {Set<string>} */
  const taken = new Set()
  return moves.map(({ to, ...move }) => {
    let free = to
    while (taken.has(free)) free = nextName(free)
    taken.add(free)
    return { ...move, to: free }
  })
}

/** @param {Move[]} existing */
const askAboutMoves = (existing) =>
  askAboutExisting(html`
    <p>There is something with ${existing.length === 1 ? 'this name' : `these ${existing.length} names`} already${existing.length > 1 ? ': the choice is for all' : nothing}.</p>
    ${nameList(existing.map(({ to }) => to))}`)

const named = 12

/** @param {string[]} names */
const nameList = (names) => html`
  <ul class="name-list" tabindex="0" aria-label="Which">
    ${names.slice(0, named).map((name) => html`<li><code>${name}</code></li>`)}
    ${names.length > named ? html`<li class="muted">and ${names.length - named} more</li>` : nothing}
  </ul>`

/** @typedef {'replace' | 'keep-both' | 'skip'} Choice */

/**
 * Asks what to do with a name that exists, or with several. Closing the dialog skips them.
 * @param {unknown} body which, and what is there
 * @param {number} [others] how many others the same can be done with
 */
export function askAboutExisting(body, others = 0) {
  let forAll = false
  const label = `Do the same for all that exist (${formatCount(others, 'more upload')})`
  return openDialog({
    title: 'This file exists',
    className: 'small',
    draw: ({ close }) => html`
      <div class="dialog-body">
        ${body}
        ${others > 0 ? checkbox(label, forAll, (value) => (forAll = value)) : nothing}
      </div>
      <footer class="dialog-footer">
        <button class="button" @click=${() => close({ choice: 'skip', forAll })}>Skip</button>
        <button class="button" @click=${() => close({ choice: 'replace', forAll })}>Replace</button>
        <button class="button primary" @click=${() => close({ choice: 'keep-both', forAll })}>Keep both</button>
      </footer>`,
  })
}

/** A way to take back the last change that this person made, or to all changes where it cannot be read. @param {string} action */
async function undoOf(action) {
  const query = { by: session.loginOf('files')?.username, action, page_size: 1 }
  const list = await get('files', '/api/changes', { query }).catch(() => undefined)
  const id = list?.changes[0]?.id
  return id === undefined ? changesLink : undoButton(id)
}

/** Takes back a change that a message names. @param {number} id */
export const undoButton = (id) => html`<button class="link-button" @click=${() => undo(id)}>Undo</button>`

const changesLink = html`<a href="#/file-changes">Changes</a>`

/** @param {number} id */
const undo = (id) =>
  attempt(async () => {
    await send('files', 'post', '/api/changes/{id}/revert', { params: { id }, json: {} })
    toast('The files are back')
    announceFilesChanged()
  })

const atOnce = 1000

/** @param {Entry} entry */
export const sizeOf = (entry) => ('sha256' in entry ? entry.size : entry.total_size)

/** @param {string[]} paths of files, or of one directory @returns {Promise<number>} how many files were deleted */
async function deleteAll(paths) {
  const [first = ''] = paths
  const json = first.endsWith('/') ? { prefix: first } : { paths }
  try {
    return first ? (await send('files', 'post', '/api/files/delete', { json })).files_deleted : 0
  } catch (error) {
    return deleteAll(withoutMissing(error, paths))
  }
}

/**
 * Deletes after naming what will go. The caller announces the change.
 * @param {Entry[]} entries
 * @returns {Promise<boolean>} whether they were deleted
 */
export async function deleteDialog(entries) {
  const paths = entries.map(({ path }) => path)
  const files = paths.filter((path) => !path.endsWith('/'))
  const deletions = paths.flatMap((path) => (path.endsWith('/') ? [[path]] : []))
  for (let at = 0; at < files.length; at += atOnce) deletions.push(files.slice(at, at + atOnce))
  let deleted = 0
  const counts = entries.map((each) => ('sha256' in each ? 1 : each.file_count))
  const total = counts.reduce((sum, each) => sum + each)
  const count = formatCount(total, 'file')
  const isDone = await confirmDialog({
    title: `Delete ${count}?`,
    danger: true,
    confirm: 'Delete',
    body: html`
      <p>Links to ${count === '1 file' ? 'it' : 'them'} stop working at once. It can be undone${deletions.length === 1 ? ', here and' : ''} in File changes:</p>
      ${nameList(entries.map((each) => `${each.path} (${'sha256' in each ? '' : `${formatCount(each.file_count, 'file')}, `}${formatBytes(sizeOf(each))})`))}`,
    action: async () => {
      for (const each of deletions) deleted += await deleteAll(each)
    },
  })
  if (deleted === 0) return isDone
  // A deletion of several requests is taken back in File changes, one by one.
  toast(html`${formatCount(deleted, 'file')} deleted ${deletions.length === 1 ? await undoOf('delete') : changesLink}`)
  return isDone
}
