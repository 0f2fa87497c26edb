import { get, send, session } from '../api/client.js'
import { explain } from '../api/transport.js'
import { html, nothing } from '../core/view.js'
import { confirmDialog, openDialog } from '../ui/dialog.js'
import { checkbox, formField } from '../ui/form.js'
import { formatBytes, formatCount } from '../ui/format.js'
import { attempt, toast } from '../ui/states.js'
import { announceFilesChanged } from './content.js'
import { nameOf, numberedPath, pathFault } from './paths.js'

/** @typedef {{ from: string, to: string }} Move */

/**
 * Moves or renames. One file or directory: its whole new path is asked for. Several: the folder that they go to. The caller
 * announces the change.
 * @param {{ files: Api.FileRecord[], directories: Api.DirectoryNode[], folder: string }} what
 * @returns {Promise<string | undefined>} where it, or the last one, is now; undefined: nothing was moved
 */
export async function moveDialog({ files, directories, folder }) {
  const sources = [
    ...directories.map(({ path }) => `${path.replace(/\/$/, '')}/`),
    ...files.map(({ path }) => path),
  ]
  const [only = ''] = sources
  const isOne = sources.length === 1
  const form = { target: isOne ? only.replace(/\/$/, '') : folder }
  const fault = () => (isOne || form.target !== '' ? pathFault(form.target) : undefined)
  /** @type {string | undefined} */
  let moved
  await confirmDialog({
    title: isOne ? `Move or rename ${nameOf(only)}` : `Move ${formatCount(sources.length, 'item')}`,
    className: 'small',
    confirm: 'Move',
    busy: 'Moving…',
    isReady: () => !fault(),
    body: (/** @type {() => void} */ update) =>
      formField(form, 'target', isOne ? 'New path' : 'To the folder', {
        fault: fault(),
        hint: 'Folders are made as they are needed. Links to the old address stop working.',
        onInput: (value) => {
          form.target = value.replace(/^\//, '')
          update()
        },
      }),
    // What was moved before a failure stays moved: another attempt takes the rest.
    action: () =>
      moveAll(
        sources,
        (from) => targetOf(from, form.target, isOne),
        (to) => {
          moved = to
        },
      ),
  })
  if (moved !== undefined) toast('Moved')
  return moved
}

/**
 * Moves all whose new names are free, and asks once about the others.
 * @param {string[]} sources emptied as they are moved
 * @param {(from: string) => string} targetFor
 * @param {(to: string) => void} onMoved
 */
async function moveAll(sources, targetFor, onMoved) {
  /** @type {Move[]} */
  const existing = []
  for (let from = sources[0]; from !== undefined; from = sources[0]) {
    const move = { from, to: targetFor(from) }
    if (await findConflict(move)) existing.push(move)
    else onMoved(move.to)
    sources.shift()
  }
  if (existing.length === 0) return
  const answer = await askAboutExisting(html`
    <p>There is something with ${existing.length === 1 ? 'this name' : `these ${existing.length} names`} already${existing.length > 1 ? ': the choice is for all' : nothing}.</p>
    <ul class="name-list">${existing.map(({ to }) => html`<li><code>${to}</code></li>`)}</ul>`)
  for (const move of existing) {
    const to = await settle(move, answer?.choice ?? 'skip')
    if (to !== undefined) onMoved(to)
  }
}

const maxNumber = 50

/** @param {Move} move @param {Choice} choice @returns {Promise<string | undefined>} where it is now */
async function settle({ from, to }, choice, number = 2) {
  if (choice === 'skip') return undefined
  const free = to.endsWith('/') ? `${numberedPath(to, number)}/` : numberedPath(to, number)
  const target = choice === 'replace' ? to : free
  const conflict = await findConflict({ from, to: target }, choice === 'replace')
  if (!conflict) return target
  if (choice === 'replace' || number === maxNumber) throw conflict
  return settle({ from, to }, choice, number + 1)
}

/** Moves. @param {Move} move @param {boolean} [overwrite] @returns {Promise<unknown>} why not, where something is there */
async function findConflict({ from, to }, overwrite = false) {
  try {
    await send('files', 'post', '/api/files/move', { json: { from, to, overwrite } })
    return undefined
  } catch (error) {
    const isIntoItself = from.endsWith('/') && to.startsWith(from)
    if (explain(error).code !== 'path_conflict' || isIntoItself) throw error
    return error
  }
}

/** @param {string} from @param {string} target @param {boolean} isOne */
function targetOf(from, target, isOne) {
  const slash = from.endsWith('/') ? '/' : ''
  if (isOne) return `${target.replace(/\/$/, '')}${slash}`
  const folder = target === '' || target.endsWith('/') ? target : `${target}/`
  return `${folder}${nameOf(from)}${slash}`
}

/** @typedef {'replace' | 'keep-both' | 'skip'} Choice */

/**
 * Asks what to do with a name that exists, or with several. Closing the dialog skips them.
 * @param {unknown} body which, and what is there
 * @param {number} [others] how many others the same can be done with
 * @returns {Promise<{ choice: Choice, forAll: boolean } | undefined>}
 */
export function askAboutExisting(body, others = 0) {
  let forAll = false
  return openDialog({
    title: 'This file exists',
    className: 'small',
    draw: ({ close }) => html`
      <div class="dialog-body">
        ${body}
        ${
          others > 0
            ? checkbox(
                `Do the same for all that exist (${formatCount(others, 'more upload')})`,
                forAll,
                (value) => (forAll = value),
              )
            : nothing
        }
      </div>
      <footer class="dialog-footer">
        <button class="button" @click=${() => close({ choice: 'skip', forAll })}>Skip</button>
        <button class="button" @click=${() => close({ choice: 'replace', forAll })}>Replace</button>
        <button class="button primary" @click=${() => close({ choice: 'keep-both', forAll })}>Keep both</button>
      </footer>`,
  })
}

/** @param {{ paths: string[] } | { prefix: string }} json */
const deleteFiles = (json) => send('files', 'post', '/api/files/delete', { json })

/** Takes back the last deletion that this person made. */
const undo = () =>
  attempt(async () => {
    const query = { by: session.loginOf('files')?.username, action: 'delete', page_size: 1 }
    const { changes } = await get('files', '/api/changes', { query })
    if (!changes[0]) return
    await send('files', 'post', '/api/changes/{id}/revert', {
      params: { id: changes[0].id },
      json: {},
    })
    toast('The files are back')
    announceFilesChanged()
  })

const atOnce = 1000
const named = 12

/**
 * Deletes files and directories after naming what will go. The caller announces the change.
 * @param {{ files: Api.FileRecord[], directories: Api.DirectoryNode[] }} what
 * @returns {Promise<boolean>} whether they were deleted
 */
export async function deleteDialog({ files, directories }) {
  const names = [
    ...directories.map(
      (each) =>
        `${each.path.replace(/\/$/, '')}/ (${formatCount(each.file_count, 'file')}, ${formatBytes(each.total_size)})`,
    ),
    ...files.map((each) => `${each.path} (${formatBytes(each.size)})`),
  ]
  const count = files.length + directories.reduce((sum, each) => sum + each.file_count, 0)
  const isDone = await confirmDialog({
    title: `Delete ${formatCount(count, 'file')}?`,
    danger: true,
    confirm: 'Delete',
    body: html`
      <p>Links to ${count === 1 ? 'it' : 'them'} stop working at once. It can be undone, here and in File changes:</p>
      <ul class="name-list">
        ${names.slice(0, named).map((name) => html`<li><code>${name}</code></li>`)}
        ${names.length > named ? html`<li class="muted">and ${names.length - named} more</li>` : nothing}
      </ul>`,
    action: async () => {
      for (const { path } of directories)
        await deleteFiles({ prefix: `${path.replace(/\/$/, '')}/` })
      for (let at = 0; at < files.length; at += atOnce) {
        await deleteFiles({ paths: files.slice(at, at + atOnce).map(({ path }) => path) })
      }
    },
  })
  // A deletion of several requests is taken back in File changes, one by one.
  const isOne = directories.length + Math.ceil(files.length / atOnce) === 1
  if (isDone)
    toast(
      html`${formatCount(count, 'file')} deleted ${isOne ? html`<button class="link-button" @click=${undo}>Undo</button>` : html`<a href="#/file-changes">Changes</a>`}`,
    )
  return isDone
}
