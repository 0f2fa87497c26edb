import { getZone } from '../../api/domain-service.js'
import { ApiError } from '../../api/problem.js'
import { html, nothing } from '../../core/html.js'
import { View } from '../../core/view.js'
import { openDialog } from '../../ui/dialog.js'
import { selectField } from '../../ui/form.js'
import { errorNotice, loading, notice } from '../../ui/states.js'
import { toast } from '../../ui/toast.js'
import { rebase, settle } from '../draft.js'
import { diffZones, isEmptyDiff, pairChanges } from '../zone-diff.js'
import { diffList, emailTypeLine, summarizeDiff } from './diff-list.js'

/**
 * @import { TaggedZone, WriteAnswer, WriteOptions } from '../../api/domain-service.js'
 * @import { WrittenZone } from '../../api/schema.d.ts'
 * @import { Conflict, Draft } from '../draft.js'
 * @typedef {object} Proposal
 * @property {string} title
 * @property {string} domain
 * @property {TaggedZone} base the zone that the person has seen
 * @property {(options: WriteOptions) => Promise<WriteAnswer>} send
 * @property {() => Draft} [draft] what is sent, where the person can change it
 * @property {(draft: Draft, base?: TaggedZone) => void} [change] replaces it, with the zone that it is for
 * @typedef {'applied' | 'queued'} Outcome
 */

/**
 * Shows what a write will change, from a dry run, and applies it: only if the zone is still the one that was shown.
 * @param {Proposal} proposal
 * @returns {Promise<Outcome | undefined>} undefined: nothing was written
 */
export function openReview(proposal) {
  let isBusy = false
  return openDialog({
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
}

class ZoneReview extends View {
  /** @type {Proposal | undefined} */
  proposal
  /** @type {(outcome?: Outcome) => void} */
  close = () => {}
  /** @type {(isBusy: boolean) => void} */
  onBusy = () => {}
  /** @type {TaggedZone | undefined} */
  #base
  /** @type {WrittenZone | undefined} */
  #preview
  /** @type {import('../zone-diff.js').ZoneDiff | undefined} what somebody else changed meanwhile */
  #conflict
  /** @type {{ draft: Draft, notes: string[], conflicts: (Conflict & { choice: 'mine' | 'theirs' | 'both' })[] } | undefined} */
  #carried
  /** @type {TaggedZone | undefined} the zone as they left it */
  #newer
  /** @type {unknown} */
  #error
  #isApplying = false
  #force = false

  opened() {
    this.#base = this.proposal?.base
    void this.#check()
  }

  /** The dry run: what would change. */
  async #check() {
    this.#preview = undefined
    this.#error = undefined
    this.update()
    try {
      const { zone } = await this.#send({ dryRun: true })
      this.#preview = zone
    } catch (error) {
      await this.#fail(error)
    }
    this.update()
  }

  /** @param {boolean} queue */
  async #apply(queue = false) {
    this.#isApplying = true
    this.onBusy(true)
    this.#error = undefined
    this.update()
    try {
      const answer = await this.#send({ dryRun: false, queue })
      this.#leave(answer)
    } catch (error) {
      await this.#fail(error)
    }
    this.#isApplying = false
    this.onBusy(false)
    this.update()
  }

  /** @param {WriteAnswer} answer */
  #leave({ zone, queuedAt }) {
    if (queuedAt !== undefined) {
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

  /** @param {{ dryRun: boolean, queue?: boolean }} options @returns {Promise<WriteAnswer>} */
  #send(options) {
    if (!this.proposal) return Promise.reject(new Error('There is nothing to review.'))
    return this.proposal.send({ ...options, etag: this.#base?.etag, force: this.#force })
  }

  // Somebody else changed the zone: read it, show the difference, and let the person go on.
  /** @param {unknown} error */
  async #fail(error) {
    if (!(error instanceof ApiError) || error.status !== 412 || !this.proposal || !this.#base) {
      this.#error = error
      return
    }
    try {
      const fresh = await getZone(this.proposal.domain, { fresh: true })
      this.#conflict = diffZones(this.#base.zone.hosts, fresh.zone.hosts)
      this.#newer = fresh
      this.#preview = undefined
      const draft = this.proposal.draft?.()
      if (!draft) return
      const { conflicts, ...carried } = rebase(draft, this.#base.zone, fresh.zone)
      this.#carried = {
        ...carried,
        conflicts: conflicts.map((each) => ({ ...each, choice: 'mine' })),
      }
    } catch (failure) {
      this.#error = failure
    }
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
      <div class="dialog-body" aria-live="polite">${this.#body()}</div>
      <footer class="dialog-footer">
        <button class="button" ?disabled=${this.#isApplying} @click=${() => this.close()}>Cancel</button>
        ${this.#buttons()}
      </footer>`
  }

  #body() {
    if (this.#conflict) return this.#conflictBody(this.#conflict)
    if (!this.#preview) return this.#error ? this.#failure() : loading(3)
    const diff = pairChanges(this.#preview.changes)
    const { kept } = this.#preview.changes
    return html`
      <p class="summary"><strong>${summarizeDiff(diff)}</strong> <span class="muted">· ${kept} stay as they are</span></p>
      ${emailTypeLine(this.#base?.zone.email_type ?? null, this.#preview.email_type)}
      ${isEmptyDiff(diff) ? html`<p class="muted">The records are already like this.</p>` : diffList(diff)}
      ${this.#preview.warnings.map((warning) => notice(warning, 'warn'))}
      ${this.#error ? this.#failure() : nothing}`
  }

  #failure() {
    const code = this.#error instanceof ApiError ? this.#error.code : ''
    return html`
      ${errorNotice(this.#error)}
      ${
        code === 'email_type_conflict' && this.proposal?.change
          ? html`<div class="button-row"><button class="button" @click=${() => this.#chooseEmail('MX')}>Use own mail servers (MX)</button></div>`
          : nothing
      }
      ${
        code === 'unsupported_records'
          ? html`<div class="button-row"><button class="button danger" @click=${this.#forceWrite}>Write anyway and lose those records</button></div>`
          : nothing
      }`
  }

  /** @param {import('../zone-diff.js').ZoneDiff} diff */
  #conflictBody(diff) {
    return html`
      ${notice(html`<p><strong>Somebody else changed this zone meanwhile.</strong> Nothing of yours was written yet.</p>`, 'warn')}
      <h3>Their changes</h3>
      ${isEmptyDiff(diff) ? html`<p class="muted">Only the handling of mail.</p>` : diffList(diff)}
      ${this.#carriedBody()}`
  }

  #carriedBody() {
    const { notes = [], conflicts = [] } = this.#carried ?? {}
    if (notes.length + conflicts.length === 0) return nothing
    return html`
      <h3>What that means for yours</h3>
      ${notes.length > 0 ? html`<ul class="notes">${notes.map((note) => html`<li>${note}</li>`)}</ul>` : nothing}
      ${conflicts.map((conflict, at) =>
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
            conflict.choice = /** @type {'mine' | 'theirs' | 'both'} */ (choice)
          },
        }),
      )}`
  }

  #buttons() {
    if (this.#conflict) {
      return html`<button class="button primary" @click=${this.#goOn}>Go on with the new zone</button>`
    }
    if (!this.#preview) {
      return this.#error
        ? html`<button class="button primary" @click=${() => this.#check()}>Try again</button>`
        : nothing
    }
    const { added, removed } = this.#preview.changes
    const isSame =
      added.length + removed.length === 0 &&
      this.#preview.email_type === this.#base?.zone.email_type
    const isBusyRegistrar = this.#error instanceof ApiError && this.#error.status === 503
    return html`
      ${isBusyRegistrar ? html`<button class="button" @click=${() => this.#apply(true)}>Queue it</button>` : nothing}
      <button class="button primary" ?disabled=${this.#isApplying || isSame} @click=${() => this.#apply()}>
        ${this.#isApplying ? 'Applying…' : 'Apply'}
      </button>`
  }

  #goOn = () => {
    const { draft, conflicts = [] } = this.#carried ?? {}
    this.#base = this.#newer
    if (draft) {
      const settled = conflicts.reduce(
        (each, conflict) => settle(each, conflict, conflict.choice),
        draft,
      )
      this.proposal?.change?.(settled, this.#newer)
    }
    this.#conflict = undefined
    this.#carried = undefined
    void this.#check()
  }

  #forceWrite = () => {
    this.#force = true
    void (this.#preview ? this.#apply() : this.#check())
  }

  /** @param {string} type */
  #chooseEmail(type) {
    const draft = this.proposal?.draft?.()
    if (draft) this.proposal?.change?.({ ...draft, emailType: type })
    void this.#check()
  }
}

customElements.define('zone-review', ZoneReview)
