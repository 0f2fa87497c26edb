interface Queued<Command, Outcome> {
  command: Command
  resolve: (outcome: Outcome) => void
  reject: (error: unknown) => void
}

/**
 * Group commit: commands of one event-loop iteration, and those that arrive while a commit runs, share the next one, so
 * that they wait for one fsync together.
 * `commit` returns one outcome per command, in order; if it rejects, so does every command of the group. After an outage
 * the queued ones are rejected, too: each group would wait for the time limit. A large command is a group of its own, and
 * between two of them the others have a group.
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
      // Not at once: the first of many would be a group of its own, and the others would wait for it.
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
