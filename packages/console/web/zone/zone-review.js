import { mustPropose } from '../api/client.js'
import { ApiError, explain } from '../api/transport.js'
import { diffList, emailTypeLine, mailNameOf, rememberQueued, summarizeDiff } from '../changes/change-item.js'
import { html, nothing } from '../core/view.js'
import { confirmDialog } from '../ui/dialog.js'
import { formField } from '../ui/form.js'
import { formatTtl } from '../ui/format.js'
import { loading, notice, toast } from '../ui/states.js'
import { emptyDraft, toPatch } from './draft.js'
import { describe, isEmptyDiff, pairChanges } from './zone-diff.js'

/**
 * @import { WriteAnswer, WriteOptions, ZoneStore } from './zone-store.js'
 * @import { Conflict } from './draft.js'
 * @import { Attempt } from '../core/view.js'
 * @typedef {(options: WriteOptions) => Promise<WriteAnswer>} Send
 */

/**
 * Shows what a write will change, from a dry run, and applies it: only if the zone is still the one that was shown.
 * @param {string} title
 * @param {ZoneStore} store with the zone that the person has seen
 * @param {Send} [send] default: sends the draft of the store
 * @returns {Promise<boolean>} whether it was applied or queued
 */
export async function openReview(title, store, send) {
  const isDone = await confirmDialog(new Review(title, store, send))
  store.conflict = undefined
  return isDone
}

/** The options of its dialog, which change with its steps. */
class Review {
  #canRetry = true
  /** @type {Api.WrittenZone | undefined} */
  preview
  #force = false
  #queue = false
  #store
  #send

  /** @param {string} title @param {ZoneStore} store @param {Send} [send] */
  constructor(title, store, send) {
    this.title = title
    this.#store = store
    this.#send = send
  }

  isReady = () => (this.preview ? !isSame(this.preview, this.#store) : this.#canRetry)

  /** @param {unknown} _update @param {Attempt} attempt */
  body = (_update, { error }) => {
    const { preview } = this
    if (this.#store.conflict) return conflictBody(this.#store.conflict)
    return preview ? previewBody(preview, this.#store) : error ? nothing : loading(3)
  }

  get confirm() {
    if (this.#store.conflict) return 'Go on with the new zone'
    return this.preview ? (mustPropose() ? 'Propose' : 'Apply') : 'Try again'
  }

  /** What lets a refused write pass, by the code of the refusal. @returns {Record<string, [string, () => unknown]>} */
  ways = () => {
    const force = () => (this.#force = true)
    /** @type {[string, () => unknown]} */
    const queue = ['Queue it', () => (this.#queue = true)]
    const useOwnMail = () => {
      this.preview = undefined
      this.#store.change({ ...this.#store.draft, emailType: 'MX' })
    }
    return {
      unsupported_records: ['Write anyway and lose those records', force],
      ...(!this.#send && { email_type_conflict: ['Use own mail servers (MX)', useOwnMail] }),
      ...(this.preview && { registrar_busy: queue, registrar_unavailable: queue }),
    }
  }

  /** The dry run: what would change. */
  prepare = () => {
    this.preview = undefined
    return this.#meetOthers(async () => {
      this.preview = (await this.#write(true)).zone
    })
  }

  /** Does the next step. @returns {Promise<boolean>} whether it was the last one */
  action = async () => {
    if (this.preview) return this.#meetOthers(() => this.#apply())
    this.#store.resolveConflict()
    await this.prepare()
    return false
  }

  // The draft ends with the write, also where the dialog was closed meanwhile.
  async #apply() {
    const { zone, queued } = await this.#write(false)
    if (queued !== undefined && this.preview) rememberQueued(queued, this.preview.changes)
    if (queued !== undefined)
      toast(html`${mustPropose() ? 'Proposed for approval' : 'Queued'}: <a href="#/changes">see the changes</a>`)
    else if (zone?.verified !== false) toast('Applied and verified at the registrar')
    else toast('Applied. The registrar could not be read back yet: see Changes.')
    if (!this.#send) this.#store.change(emptyDraft)
    void this.#store.base.reload()
  }

  // Somebody else changed the zone: reads it, so that the person sees what that means and can go on.
  /** @param {() => Promise<void>} task @returns {Promise<boolean>} whether it was done */
  async #meetOthers(task) {
    try {
      await task()
      return true
    } catch (error) {
      this.#canRetry = ![400, 403, 422].includes(explain(error).status)
      if (!(error instanceof ApiError) || error.status !== 412) throw nameFaults(error, this.#store)
      await this.#store.meetConflict()
      this.preview = undefined
      return false
    }
  }

  /** @param {boolean} dryRun */
  async #write(dryRun) {
    const store = this.#store
    if (!store.base.value) await store.base.reload()
    const options = { dryRun, queue: this.#queue, etag: store.base.value?.etag, force: this.#force }
    this.#queue = false
    return this.#send?.(options) ?? store.send(options)
  }
}

/** Whether nothing would change. @param {Api.WrittenZone} preview @param {ZoneStore} store */
const isSame = ({ changes, email_type: emailType }, { base }) =>
  changes.added.length + changes.removed.length === 0 && emailType === base.value?.zone.email_type

/** @param {Api.WrittenZone} preview @param {ZoneStore} store */
function previewBody({ changes, email_type: emailType, warnings }, { base }) {
  const diff = pairChanges(changes)
  return html`
    <p class="summary"><strong>${summarizeDiff(diff)}</strong> <span class="muted">· ${changes.kept} stay as they are</span></p>
    ${emailTypeLine(base.value?.zone.email_type ?? null, emailType)}
    ${isEmptyDiff(diff) ? html`<p class="muted">The records are already like this.</p>` : diffList(diff)}
    ${warnings.filter((each) => !each.startsWith('the email type changes')).map((warning) => notice(warning, 'warn'))}`
}

/** @param {NonNullable<ZoneStore['conflict']>} conflict */
const conflictBody = ({ theirs, notes, conflicts }) => html`
  ${notice(html`<p><strong>Somebody else changed this zone meanwhile.</strong> Nothing of yours was written yet.</p>`, 'warn')}
  <h3>Their changes</h3>
  ${isEmptyDiff(theirs) ? html`<p class="muted">Only the handling of mail.</p>` : diffList(theirs)}
  ${notes.length + conflicts.length > 0 ? html`<h3>What that means for yours</h3>` : nothing}
  ${notes.length > 0 ? html`<ul class="notes">${notes.map((note) => html`<li>${note}</li>`)}</ul>` : nothing}
  ${conflicts.map(choiceOf)}`

/** The same refusal with records, and ways to handle mail, in place of JSON pointers into the patch and values. @param {unknown} error @param {ZoneStore} store */
function nameFaults(error, { draft, base }) {
  if (!(error instanceof ApiError) || error.errors.length === 0 || !base.value) return error
  const { zone } = base.value
  const { add = [], update = [] } = toPatch(draft, zone)
  const named = (/** @type {string} */ text) =>
    text
      .replace(/\/(add|update)\/(\d+)(?:\/\w+)?/g, (pointer, list, at) => {
        const id = update[at]?.id
        const record = list === 'add' ? add[at] : draft.records[id ?? '']
        return record ? describe(record) : pointer
      })
      .replace(/^\/email_type: must be one of ([A-Z, ]*[A-Z])/, (_, types) => {
        const names = types.split(', ').map(mailNameOf)
        return `Mail handling must be one of ${names.join(', ')}`
      })
  const errors = error.errors.map((each) => ({
    path: named(each.path),
    message: named(each.message),
  }))
  return new ApiError(error.status, { ...error.body, detail: named(error.message), errors })
}

/** @param {Api.RecordInput} record */
const shortOf = ({ address, ttl = 1800 }) => `${address}, ${formatTtl(ttl)}`

/** @param {Conflict} conflict @param {number} at */
function choiceOf(conflict, at) {
  const { mine, theirs } = conflict
  const options = [
    ['mine', mine ? `Mine: ${shortOf(mine)}` : 'Delete it'],
    ['theirs', `Theirs: ${shortOf(theirs)}`],
    ...(mine ? [['both', 'Both']] : []),
  ]
  const label = `Both of you changed ${theirs.type} ${theirs.name}`
  return formField(conflict, 'choice', label, { id: `conflict-${at}`, options })
}
