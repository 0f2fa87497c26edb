import { get, send } from '../api/client.js'
import { html, nothing } from '../core/html.js'
import { session } from '../core/session.js'
import { confirmDialog } from '../ui/dialog.js'
import { formatBytes, formatCount } from '../ui/format.js'
import { attempt, toast } from '../ui/toast.js'
import { announceFilesChanged } from './file-changes.js'

/** @import { DirectoryNode, FileRecord } from '../api/schema.d.ts' */

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
 * @param {{ files: FileRecord[], directories: DirectoryNode[] }} what
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
