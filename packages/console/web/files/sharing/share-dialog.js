import { get, isAdmin, send } from '../../api/client.js'
import { urlOf } from '../../api/transport.js'
import { html, nothing } from '../../core/view.js'
import { secretOnce } from '../../ui/copy.js'
import { confirmDialog } from '../../ui/dialog.js'
import { checkbox, formField } from '../../ui/form.js'
import { formatCount, formatTime } from '../../ui/format.js'
import { toast } from '../../ui/states.js'

/** @import { Attempt } from '../../core/view.js' */

const day = 86_400
const spans = [1, 7, 30, 365].map((days) => [`${days}`, formatCount(days, 'day')])

const words = html`<strong>Copy it now.</strong> The link is shown this once. Whoever has it reads the files.`

/** Links to a file or a folder, and whether a folder is private. @param {string} path a folder ends in `/` */
export function openShareDialog(path) {
  const form = { days: '7', downloads: '' }
  const isLockable = path.endsWith('/') && isAdmin('files')
  let url = ''
  let isPrivate = false
  /** One's own; admins see all. @type {Api.Link[]} */
  let links = []
  const load = async () => {
    ;({ links } = await get('files', '/api/links', { query: { path, page_size: 200 } }))
    if (isLockable) isPrivate = isPrivateBy((await get('files', '/api/access')).rules, path)
  }
  const lock = (/** @type {boolean} */ wanted, /** @type {Attempt} */ attempt) => {
    isPrivate = wanted // As the box shows; a failure sets it back.
    const sent = send('files', 'put', '/api/access/{path}', { params: { path }, json: { public: !wanted } })
    const failed = (/** @type {unknown} */ error) => {
      isPrivate = !wanted
      throw error
    }
    const said = () => toast(`${path} is ${wanted ? 'private' : 'public'} now`)
    return attempt.run(() => sent.then(() => load().then(said), failed))
  }
  const revoke = (/** @type {string} */ id) => send('files', 'delete', '/api/links/{id}', { params: { id } })
  return confirmDialog({
    title: `Share ${path}`,
    confirm: 'Make a link',
    prepare: load,
    body: (/** @type {unknown} */ _, /** @type {Attempt} */ attempt) => html`
      ${isLockable ? checkbox('Private folder', isPrivate, (wanted) => lock(wanted, attempt), 'Its files are served only to people and programs that log in, and by links.') : nothing}
      <div class="field-pair">
        ${formField(form, 'days', 'Link valid for', { options: spans })}
        ${formField(form, 'downloads', 'Downloads', { inputMode: 'numeric', hint: 'Empty: as many as they like' })}
      </div>
      ${linkList(links, (id) => attempt.run(() => revoke(id).then(load)))}`,
    action: async () => {
      const downloads = form.downloads ? { downloads: Number(form.downloads) } : {}
      const json = { path, expires_in: Number(form.days) * day, ...downloads }
      url = new URL((await send('files', 'post', '/api/links', { json })).url, urlOf('files')).href
    },
    done: () => secretOnce(words, url, 'Link'),
  })
}

/** By the rule of the closest folder. @param {Api.AccessRule[]} rules @param {string} path */
function isPrivateBy(rules, path) {
  const above = rules.filter(({ prefix }) => path.startsWith(prefix))
  return above.sort((a, b) => b.prefix.length - a.prefix.length)[0]?.public === false
}

/** @param {Api.Link[]} links @param {(id: string) => unknown} revoke */
const linkList = (links, revoke) => html`
  <h3>Links</h3>
  ${links.length === 0 ? html`<p class="muted">No links yet.</p>` : nothing}
  <ul class="plain-list">
    ${links.map(
      ({ id, name, by, expires_at: until, downloads_left: left }) => html`
        <li>
          <span>${name ?? by}, until ${formatTime(until)}</span>
          ${left === null ? nothing : html`<span class="chip">${formatCount(left, 'download')} left</span>`}
          <button class="link-button" type="button" @click=${() => revoke(id)}>Revoke</button>
        </li>`,
    )}
  </ul>`
