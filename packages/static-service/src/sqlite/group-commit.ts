import { DatabaseUnavailableError, OutcomeUnknownError } from '@domains-and-files/persistence'

/** Of a command that succeeded, or the error of one that failed alone. */
export type Outcome<Done> = Done | { error: unknown }

interface Queued<Command, Done extends { value: unknown }> {
  command: Command
  resolve: (value: Done['value']) => void
  reject: (error: unknown) => void
}

/**
 * Group commit: commands of one event-loop iteration, and those that arrive during a commit, share the next commit and
 * its fsync. `commit` returns one outcome per command, in order; if it rejects, every command of the group rejects. An
 * outage also rejects the queue: otherwise each group would wait for the time limit. A large command is a group of its
 * own; a group of small commands runs between two large ones.
 */
export class GroupCommit<Command, Done extends { value: unknown }> {
  readonly #commit: (commands: Command[]) => Promise<Outcome<Done>[]>
  readonly #isOutage: (error: unknown) => boolean
  readonly #small: Queued<Command, Done>[] = []
  readonly #large: Queued<Command, Done>[] = []
  #isCommitting = false

  constructor(
    commit: (commands: Command[]) => Promise<Outcome<Done>[]>,
    isOutage: (error: unknown) => boolean,
  ) {
    this.#commit = commit
    this.#isOutage = isOutage
  }

  submit(command: Command, size: 'small' | 'large' = 'small'): Promise<Done['value']> {
    const { promise, resolve, reject } = Promise.withResolvers<Done['value']>()
    const queue = size === 'large' ? this.#large : this.#small
    queue.push({ command, resolve, reject })
    // Deferred: otherwise the first command would be committed alone, and the others would wait for it.
    if (!this.#isCommitting) setImmediate(() => void this.#run())
    this.#isCommitting = true
    return promise
  }

  /** Commands that wait for a commit. */
  get queued(): number {
    return this.#small.length + this.#large.length
  }

  async #run() {
    while (this.#small.length + this.#large.length > 0) {
      await this.#commitGroup(this.#small.splice(0, maxGroup))
      await this.#commitGroup(this.#large.splice(0, 1))
    }
    this.#isCommitting = false
  }

  async #commitGroup(group: Queued<Command, Done>[]) {
    if (group.length === 0) return
    try {
      const outcomes = await this.#commit(group.map(({ command }) => command))
      for (const [at, { resolve, reject }] of group.entries()) {
        const outcome = outcomes[at] ?? { error: new Error('a command has no outcome') }
        if ('error' in outcome) reject(outcome.error)
        else resolve(outcome.value)
      }
    } catch (error) {
      const isOutage = this.#isOutage(error)
      const queued = isOutage ? [...this.#small.splice(0), ...this.#large.splice(0)] : []
      for (const { reject } of [...group, ...queued]) reject(error)
    }
  }
}

const maxGroup = 64

/**
 * One outcome per command, in order. If the group fails, retries each command alone: on a full disk removals may work
 * although stores fail. Rejects if the database is unavailable: each retry would wait for it. `onFailure` makes the
 * outcome of a command that fails alone.
 */
export async function commitEach<Command, Done>(
  commands: Command[],
  commit: (commands: Command[]) => Promise<Outcome<Done>[]>,
  onFailure: (command: Command, error: unknown) => Promise<Outcome<Done>>,
): Promise<Outcome<Done>[]> {
  try {
    return await commit(commands)
  } catch (error) {
    if (error instanceof DatabaseUnavailableError || error instanceof OutcomeUnknownError)
      throw error
    const [command, ...others] = commands
    if (command !== undefined && others.length === 0) return [await onFailure(command, error)]
  }
  const outcomes = []
  for (const each of commands)
    outcomes.push(...(await commitEach([each], commit, onFailure).catch((error) => [{ error }])))
  return outcomes
}
