import { get, send, session } from '../api/client.js'
import { ApiError } from '../api/transport.js'
import { html, nothing } from '../core/view.js'
import { confirmDialog, openDialog } from '../ui/dialog.js'
import { checkbox, formField } from '../ui/form.js'
import { formatBytes, formatCount } from '../ui/format.js'
import { attempt, toast } from '../ui/states.js'
import { announceFilesChanged, currentPath } from './content.js'
import { nameOf, nextName } from './paths.js'

/**
 * @typedef {Api.FileRecord | Api.DirectoryNode} Entry
 * @typedef {{ from: string, to: string, overwrite?: boolean }} Move
 */

/**
 * Moves or renames, as one change. One entry: its whole new path is asked for. Several: the folder that they go to. The
 * caller announces the change.
 * @param {Entry[]} entries
 * @returns {Promise<string | undefined>} where the first one is now; undefined: nothing was moved
 */
export async function moveDialog(entries) {
  const { path: only = '' } = entries.length === 1 ? (entries[0] ?? {}) : {}
  const form = { target: only.replace(/\/$/, '') || currentPath().folder }
  const targetOf = (/** @type {string} */ from) => {
    const names = only ? [form.target] : [form.target, nameOf(from)]
    return `${names.filter(Boolean).join('/')}${from.endsWith('/') ? '/' : ''}`
  }
  /** @type {Move[]} */
  let moved = []
  await confirmDialog({
    title: only ? `Move or rename ${nameOf(only)}` : `Move ${formatCount(entries.length, 'item')}`,
    className: 'small',
    confirm: 'Move',
    busy: 'Moving…',
    body: () =>
      formField(form, 'target', only ? 'New path' : 'To the folder', {
        hint: 'Folders are made as they are needed. Links to the old address stop working.',
        isRequired: only !== '',
      }),
    action: async () => {
      form.target = form.target.replace(/^\/|\/$/g, '')
      moved = await moveAll(entries.map(({ path }) => ({ from: path, to: targetOf(path) })))
    },
  })
  if (moved.length > 0) toast('Moved')
  return moved[0]?.to
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
      if (left.length > 1 || !only)
        await send('files', 'post', '/api/files/move/batch', { json: { moves: left } })
      else await send('files', 'post', '/api/files/move', { json: only }) // A directory of any size.
      return left
    } catch (error) {
      /** @type {string[]} */
      const paths = (error instanceof ApiError && error.body.paths) || []
      const isMet = (/** @type {Move} */ { to }) =>
        paths.some((path) => `${path}/`.startsWith(to.replace(/\/?$/, '/')))
      const existing = left.filter(isMet)
      if (existing.length === 0) throw error
      choice ??= (await askAboutMoves(existing))?.choice ?? 'skip'
      left = left.flatMap((move) => {
        if (!existing.includes(move)) return move
        if (choice === 'skip') return []
        return choice === 'replace'
          ? { ...move, overwrite: true }
          : { ...move, to: nextName(move.to) }
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

/** Takes back the last deletion that this person made. */
const undo = () =>
  attempt(async () => {
    const query = { by: session.loginOf('files')?.username, action: 'delete', page_size: 1 }
    const [last] = (await get('files', '/api/changes', { query })).changes
    if (!last) return
    const params = { id: last.id }
    await send('files', 'post', '/api/changes/{id}/revert', { params, json: {} })
    toast('The files are back')
    announceFilesChanged()
  })

const atOnce = 1000

/** @param {Entry} entry */
export const sizeOf = (entry) => ('sha256' in entry ? entry.size : entry.total_size)

/**
 * Deletes after naming what will go. The caller announces the change.
 * @param {Entry[]} entries
 * @returns {Promise<boolean>} whether they were deleted
 */
export async function deleteDialog(entries) {
  const paths = entries.map(({ path }) => path)
  const files = paths.filter((path) => !path.endsWith('/'))
  /** @type {({ prefix: string } | { paths: string[] })[]} */
  const deletions = paths.flatMap((prefix) => (prefix.endsWith('/') ? { prefix } : []))
  for (let at = 0; at < files.length; at += atOnce)
    deletions.push({ paths: files.slice(at, at + atOnce) })
  const counts = entries.map((each) => ('sha256' in each ? 1 : each.file_count))
  const total = counts.reduce((sum, each) => sum + each)
  const count = formatCount(total, 'file')
  const isDone = await confirmDialog({
    title: `Delete ${count}?`,
    danger: true,
    confirm: 'Delete',
    body: html`
      <p>Links to ${count === '1 file' ? 'it' : 'them'} stop working at once. It can be undone, here and in File changes:</p>
      ${nameList(entries.map((each) => `${each.path} (${'sha256' in each ? '' : `${formatCount(each.file_count, 'file')}, `}${formatBytes(sizeOf(each))})`))}`,
    action: async () => {
      for (const json of deletions) await send('files', 'post', '/api/files/delete', { json })
    },
  })
  // A deletion of several requests is taken back in File changes, one by one.
  const way =
    deletions.length === 1
      ? html`<button class="link-button" @click=${undo}>Undo</button>`
      : html`<a href="#/file-changes">Changes</a>`
  if (isDone) toast(html`${count} deleted ${way}`)
  return isDone
}
