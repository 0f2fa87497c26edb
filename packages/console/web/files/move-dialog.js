import { send } from '../api/client.js'
import { explain } from '../api/problem.js'
import { html, nothing } from '../core/html.js'
import { confirmDialog } from '../ui/dialog.js'
import { formField } from '../ui/form.js'
import { formatCount } from '../ui/format.js'
import { toast } from '../ui/toast.js'
import { askAboutExisting } from './conflict-dialog.js'
import { nameOf, numberedPath, pathFault } from './paths.js'

/**
 * @import { DirectoryNode, FileRecord } from '../api/schema.d.ts'
 * @typedef {{ from: string, to: string }} Move
 */

/**
 * Moves or renames. One file or directory: its whole new path is asked for. Several: the folder that they go to. The caller
 * announces the change.
 * @param {{ files: FileRecord[], directories: DirectoryNode[], folder: string }} what
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

/** @param {Move} move @param {import('./conflict-dialog.js').Choice} choice */
async function settle({ from, to }, choice) {
  if (choice === 'skip') return undefined
  /** @type {unknown} */
  let conflict
  for (let number = 2; number <= maxNumber; number += 1) {
    const free = to.endsWith('/') ? `${numberedPath(to, number)}/` : numberedPath(to, number)
    const target = choice === 'replace' ? to : free
    conflict = await findConflict({ from, to: target }, choice === 'replace')
    if (!conflict) return target
    if (choice === 'replace') break
  }
  throw conflict
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
