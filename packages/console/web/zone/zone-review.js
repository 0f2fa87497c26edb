import { ApiError } from '../api/transport.js'
import { diffList, emailTypeLine, rememberQueued, summarizeDiff } from '../changes/change-item.js'
import { Attempt, html, nothing, View } from '../core/view.js'
import { openDialog } from '../ui/dialog.js'
import { selectField } from '../ui/form.js'
import { errorNotice, loading, notice, toast } from '../ui/states.js'
import { toPatch } from './draft.js'
import { describe, isEmptyDiff, pairChanges } from './zone-diff.js'

/** @import { WriteAnswer, WriteOptions, ZoneStore } from './zone-store.js' @import { Conflict } from './draft.js' */

/**
 * @typedef {object} Proposal
 * @property {string} title
 * @property {ZoneStore} store with the zone that the person has seen
 * @property {(options: WriteOptions) => Promise<WriteAnswer>} [send] default: sends the draft of the store
 * @typedef {'applied' | 'queued'} Outcome
 */

/**
 * Shows what a write will change, from a dry run, and applies it: only if the zone is still the one that was shown.
 * @param {Proposal} proposal
 * @returns {Promise<Outcome | undefined>} undefined: nothing was written
 */
export async function openReview(proposal) {
  let isBusy = false
  /** @type {Outcome | undefined} */
  const outcome = await openDialog({
    title: proposal.title,
    isLocked: () => isBusy,
    draw: ({ close }) => html`
      <zone-review
        .proposal=${proposal}
        .close=${close}
        .onBusy=${(/** @type {boolean} */ value) => {
          isBusy = value
        }}
      ></zone-review>`,
  })
  proposal.store.conflict = undefined
  return outcome
}

class ZoneReview extends View {
  /** @type {Proposal | undefined} */
  proposal
  /** @type {(outcome?: Outcome) => void} */
  close = () => {}
  /** @type {(isBusy: boolean) => void} */
  onBusy = () => {}
  /** @type {Api.WrittenZone | undefined} */
  #preview
  #force = false
  #attempt = new Attempt(() => {
    this.onBusy(this.#isApplying)
    this.update()
  })

  /** Not while the dry run is under way. */
  get #isApplying() {
    return this.#attempt.isBusy && this.#preview !== undefined
  }

  get #store() {
    if (!this.proposal) throw new Error('There is nothing to review.')
    return this.proposal.store
  }

  opened() {
    void this.#check()
  }

  /** The dry run: what would change. */
  #check() {
    this.#preview = undefined
    return this.#run(async () => {
      this.#preview = (await this.#send({ dryRun: true })).zone
    })
  }

  #apply = (queue = false) =>
    this.#run(async () => this.#leave(await this.#send({ dryRun: false, queue })))

  // Somebody else changed the zone: reads it, shows the difference, and lets the person go on.
  /** @param {() => Promise<void>} task */
  #run = (task) =>
    this.#attempt.run(() =>
      task().catch(async (error) => {
        if (!(error instanceof ApiError) || error.status !== 412)
          throw nameFaults(error, this.#store)
        await this.#store.meetConflict()
        this.#preview = undefined
      }),
    )

  /** @param {WriteAnswer} answer */
  #leave({ zone, queued }) {
    if (queued !== undefined) {
      if (this.#preview) rememberQueued(queued, this.#preview.changes)
      toast(html`Queued: <a href="#/changes">see the changes</a>`)
      return this.close('queued')
    }
    toast(
      zone?.verified === false
        ? 'Applied. The registrar could not be read back yet: see Changes.'
        : 'Applied and verified at the registrar',
    )
    return this.close('applied')
  }

  /** @param {{ dryRun: boolean, queue?: boolean }} options */
  async #send(options) {
    const store = this.#store
    if (!store.base.value) await store.base.reload()
    const all = { ...options, etag: store.base.value?.etag, force: this.#force }
    return this.proposal?.send?.(all) ?? store.send(all)
  }

  // The next step has the focus once it can be taken.
  rendered() {
    if (this.#isApplying || this.contains(document.activeElement)) return
    /** @type {HTMLButtonElement | null} */
    const next = this.querySelector('.primary')
    next?.focus()
  }

  template() {
    return html`
      <div class="dialog-body" aria-live="polite">${this.#store.conflict ? this.#conflictBody(this.#store.conflict) : this.#body()}</div>
      <footer class="dialog-footer">
        <button class="button" ?disabled=${this.#isApplying} @click=${() => this.close()}>Cancel</button>
        ${this.#buttons()}
      </footer>`
  }

  #body() {
    if (!this.#preview) return this.#attempt.error ? this.#failure() : loading(3)
    const diff = pairChanges(this.#preview.changes)
    const { kept } = this.#preview.changes
    return html`
      <p class="summary"><strong>${summarizeDiff(diff)}</strong> <span class="muted">· ${kept} stay as they are</span></p>
      ${emailTypeLine(this.#store.base.value?.zone.email_type ?? null, this.#preview.email_type)}
      ${isEmptyDiff(diff) ? html`<p class="muted">The records are already like this.</p>` : diffList(diff)}
      ${this.#preview.warnings.map((warning) => notice(warning, 'warn'))}
      ${this.#attempt.error ? this.#failure() : nothing}`
  }

  #failure() {
    return errorNotice(this.#attempt.error, {
      unsupported_records: ['Write anyway and lose those records', this.#forceWrite],
      email_type_conflict: this.proposal?.send
        ? undefined
        : ['Use own mail servers (MX)', this.#useOwnMail],
    })
  }

  /** @param {NonNullable<ZoneStore['conflict']>} conflict */
  #conflictBody({ theirs, notes, conflicts }) {
    return html`
      ${notice(html`<p><strong>Somebody else changed this zone meanwhile.</strong> Nothing of yours was written yet.</p>`, 'warn')}
      <h3>Their changes</h3>
      ${isEmptyDiff(theirs) ? html`<p class="muted">Only the handling of mail.</p>` : diffList(theirs)}
      ${notes.length + conflicts.length > 0 ? html`<h3>What that means for yours</h3>` : nothing}
      ${notes.length > 0 ? html`<ul class="notes">${notes.map((note) => html`<li>${note}</li>`)}</ul>` : nothing}
      ${conflicts.map(choiceOf)}`
  }

  #buttons() {
    if (this.#store.conflict) {
      return html`<button class="button primary" @click=${this.#goOn}>Go on with the new zone</button>`
    }
    if (!this.#preview) {
      return this.#attempt.error
        ? html`<button class="button primary" @click=${() => this.#check()}>Try again</button>`
        : nothing
    }
    const { added, removed } = this.#preview.changes
    const isSame =
      added.length + removed.length === 0 &&
      this.#preview.email_type === this.#store.base.value?.zone.email_type
    const isBusyRegistrar =
      this.#attempt.error instanceof ApiError && this.#attempt.error.status === 503
    return html`
      ${isBusyRegistrar ? html`<button class="button" @click=${() => this.#apply(true)}>Queue it</button>` : nothing}
      <button class="button primary" ?disabled=${this.#isApplying || isSame} @click=${() => this.#apply()}>
        ${this.#isApplying ? 'Applying…' : 'Apply'}
      </button>`
  }

  #goOn = () => {
    this.#store.resolveConflict()
    void this.#check()
  }

  #useOwnMail = () => {
    this.#store.change({ ...this.#store.draft, emailType: 'MX' })
    void this.#check()
  }

  #forceWrite = () => {
    this.#force = true
    void (this.#preview ? this.#apply() : this.#check())
  }
}

/** The same refusal with records in place of JSON pointers into the patch. @param {unknown} error @param {ZoneStore} store */
function nameFaults(error, { draft, base }) {
  if (!(error instanceof ApiError) || error.errors.length === 0 || !base.value) return error
  const { zone } = base.value
  const { add = [], update = [] } = toPatch(draft, zone)
  const named = (/** @type {string} */ text) =>
    text.replace(/\/(add|update)\/(\d+)(?:\/\w+)?/g, (pointer, list, at) => {
      const id = update[at]?.id
      const record = list === 'add' ? add[at] : id && (draft.records.get(id) ?? undefined)
      return record ? describe(record) : pointer
    })
  const errors = error.errors.map(({ path, message }) => ({
    path: named(path),
    message: named(message),
  }))
  return new ApiError({ ...error, detail: error.message, errors })
}

/** @param {Conflict} conflict @param {number} at */
const choiceOf = (conflict, at) =>
  selectField({
    id: `conflict-${at}`,
    label: `Both of you changed ${conflict.theirs.type} ${conflict.theirs.name}`,
    value: conflict.choice,
    options: [
      ['mine', `Mine: ${conflict.mine.address}`],
      ['theirs', `Theirs: ${conflict.theirs.address}`],
      ['both', 'Both'],
    ],
    onInput: (choice) => {
      conflict.choice = /** @type {Conflict['choice']} */ (choice)
    },
  })

customElements.define('zone-review', ZoneReview)
