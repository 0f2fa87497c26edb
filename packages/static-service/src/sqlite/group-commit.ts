import { DatabaseUnavailableError, OutcomeUnknownError } from '@domains-and-files/persistence'

interface Queued<Command, Outcome> {
  command: Command
  resolve: (outcome: Outcome) => void
  reject: (error: unknown) => void
}

/**
 * Group commit: commands of one event-loop iteration, and those that arrive during a commit, share the next commit and
 * its fsync. `commit` returns one outcome per command, in order; if it rejects, every command of the group rejects. An
 * outage also rejects the queue: otherwise each group would wait for the time limit. A large command is a group of its
 * own; a group of small commands runs between two large ones.
 */
export class GroupCommit<Command, Outcome> {
  readonly #commit: (commands: Command[]) => Promise<Outcome[]>
  readonly #isOutage: (error: unknown) => boolean
  readonly #isLarge: (command: Command) => boolean
  #queue: Queued<Command, Outcome>[] = []
  #large: Queued<Command, Outcome>[] = []
  #isCommitting = false

  constructor(
    commit: (commands: Command[]) => Promise<Outcome[]>,
    {
      isOutage = () => false,
      isLarge = () => false,
    }: { isOutage?: (error: unknown) => boolean; isLarge?: (command: Command) => boolean } = {},
  ) {
    this.#commit = commit
    this.#isOutage = isOutage
    this.#isLarge = isLarge
  }

  submit(command: Command): Promise<Outcome> {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
    const queue = this.#isLarge(command) ? this.#large : this.#queue
    queue.push({ command, resolve, reject })
    if (!this.#isCommitting) {
      this.#isCommitting = true
      // Deferred: otherwise the first command would be committed alone, and the others would wait for it.
      setImmediate(() => void this.#run())
    }
    return promise
  }

  /** Commands that wait for a commit. */
  get queued(): number {
    return this.#queue.length + this.#large.length
  }

  async #run() {
    while (this.queued > 0) {
      await this.#commitGroup(this.#queue.splice(0, maxGroup))
      await this.#commitGroup(this.#large.splice(0, 1))
    }
    this.#isCommitting = false
  }

  async #commitGroup(group: Queued<Command, Outcome>[]) {
    if (group.length === 0) return
    try {
      const outcomes = await this.#commit(group.map(({ command }) => command))
      for (const [at, { resolve, reject }] of group.entries()) {
        const outcome = outcomes[at]
        if (outcome === undefined) reject(new Error('a command has no outcome'))
        else resolve(outcome)
      }
    } catch (error) {
      const isOutage = this.#isOutage(error)
      const queued = isOutage ? [...this.#queue.splice(0), ...this.#large.splice(0)] : []
      for (const { reject } of [...group, ...queued]) reject(error)
    }
  }
}

const maxGroup = 64

type Commit<Command, Done> = (commands: Command[]) => Promise<(Done | { error: unknown })[]>

/**
 * One outcome per command, in order. If the group fails, retries each command alone: on a full disk removals may work
 * although stores fail. Rejects if the database is unavailable: each retry would wait for it. `onFailure` makes the
 * outcome of a command that fails alone.
 */
export async function commitEach<Command, Done>(
  commands: Command[],
  commit: Commit<Command, Done>,
  onFailure: (command: Command, error: unknown) => Promise<Done | { error: unknown }>,
): Promise<(Done | { error: unknown })[]> {
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
