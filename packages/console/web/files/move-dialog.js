import { send } from '../api/client.js'
import { html } from '../core/html.js'
import { openDialog } from '../ui/dialog.js'
import { textField } from '../ui/form.js'
import { formatCount } from '../ui/format.js'
import { errorNotice } from '../ui/states.js'
import { toast } from '../ui/toast.js'
import { nameOf, pathFault } from './paths.js'

/** @import { DirectoryNode, FileRecord } from '../api/schema.d.ts' */

/**
 * Moves or renames. One file or directory: its whole new path is asked for. Several: the folder that they go to. The caller announces
 * the change.
 * @param {{ files: FileRecord[], directories: DirectoryNode[], folder: string }} what
 * @returns {Promise<string | undefined>} the new path, or the folder
 */
export async function moveDialog({ files, directories, folder }) {
  const sources = [
    ...directories.map(({ path }) => `${path.replace(/\/$/, '')}/`),
    ...files.map(({ path }) => path),
  ]
  const [only = ''] = sources
  const isOne = sources.length === 1
  let target = isOne ? only.replace(/\/$/, '') : folder
  let isBusy = false
  /** @type {unknown} */
  let error
  const moved = await openDialog({
    title: isOne ? `Move or rename ${nameOf(only)}` : `Move ${formatCount(sources.length, 'item')}`,
    className: 'small',
    isLocked: () => isBusy,
    draw: ({ close, update }) => {
      const fault = isOne || target !== '' ? pathFault(target) : undefined
      const submit = async (/** @type {Event} */ event) => {
        event.preventDefault()
        isBusy = true
        error = undefined
        update()
        try {
          for (const from of sources) {
            const json = { from, to: targetOf(from, target, isOne) }
            await send('files', 'post', '/api/files/move', { json })
          }
          close(target)
        } catch (failure) {
          error = failure
        }
        isBusy = false
        update()
      }
      return html`
        <form class="dialog-form" @submit=${submit}>
          <div class="dialog-body">
            ${textField({
              id: 'target',
              label: isOne ? 'New path' : 'To the folder',
              value: target,
              fault,
              hint: 'Folders are made as they are needed. Links to the old address stop working.',
              onInput: (value) => {
                target = value.replace(/^\//, '')
                update()
              },
            })}
            ${errorNotice(error)}
          </div>
          <footer class="dialog-footer">
            <button class="button" type="button" @click=${() => close()}>Cancel</button>
            <button class="button primary" ?disabled=${isBusy || Boolean(fault)}>${isBusy ? 'Moving…' : 'Move'}</button>
          </footer>
        </form>`
    },
  })
  if (moved !== undefined) toast('Moved')
  return moved
}

/** @param {string} from @param {string} target @param {boolean} isOne */
function targetOf(from, target, isOne) {
  const slash = from.endsWith('/') ? '/' : ''
  if (isOne) return `${target.replace(/\/$/, '')}${slash}`
  const folder = target === '' || target.endsWith('/') ? target : `${target}/`
  return `${folder}${nameOf(from)}${slash}`
}
