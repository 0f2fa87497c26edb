import { readFileSync, statSync } from 'node:fs'
import { describeIssue, StartRefusedError } from '@domains-and-files/http'
import { updateFile } from '@domains-and-files/persistence'
import { z } from 'zod'
import { changeUsers, isActive, User, UserList, Username, type Users } from './user.ts'

interface Content {
  byName: Map<string, User>
  fault: string | undefined
}

/** The users file cannot be used. The message names the reason and quotes no content. */
const invalid = (file: string, cause: unknown) =>
  new StartRefusedError(`Cannot use the users file ${file}: ${explain(cause)}`)

/**
 * The users file, which operators also edit by hand. A faulty entry is disabled while the others count, so that a fault
 * never keeps a removed user in force. While the file is unreadable or not JSON, the last users read stay in force.
 */
export class FileUsers implements Users {
  readonly name: string
  readonly #report: (error: Error) => void
  #version: ReturnType<typeof versionOf> | undefined
  #last: Content | undefined

  /** `report` receives each fault of look-ups once. Faults that `list` and `update` throw are not reported. */
  constructor(file: string, report: (error: Error) => void) {
    this.name = file
    this.#report = report
  }

  async find(username: string) {
    return this.#content.byName.get(username)
  }

  async first() {
    const [first] = this.#content.byName.values()
    return first
  }

  get fault() {
    return this.#content.fault
  }

  /** A file that never was there has no users. @throws {StartRefusedError} for any fault. */
  async list() {
    if (!this.#last?.byName.size && !statSync(this.name, { throwIfNoEntry: false })) return []
    return this.#parse(() => readFileSync(this.name, 'utf8'))
  }

  /** Locks the file between processes. @throws {StartRefusedError} for any fault, instead of overwriting it. */
  async update(change: (users: User[]) => User[]) {
    await updateFile(this.name, (text) => {
      const isNew = text === undefined && !this.#last?.byName.size
      const before = isNew ? [] : this.#parse(() => text ?? readFileSync(this.name, 'utf8'))
      return `${JSON.stringify({ users: changeUsers(before, change) }, null, 2)}\n`
    })
  }

  #parse(read: () => string): User[] {
    const { users = [], fault } = parseUsers(this.name, read)
    if (fault) throw fault
    return users
  }

  get #content(): Content {
    // A stat costs microseconds. A watch can miss changes in mounted directories.
    const version = versionOf(this.name)
    const before = this.#last
    if (before && version.id === this.#version?.id && !this.#version.isRecent) return before
    const { users, fault: error } = parseUsers(this.name, () => readFileSync(this.name, 'utf8'))
    // The version from before the read: the next look-up detects a change during it, and repeats a failed read.
    this.#version = users && version
    const fault = error?.message
    if (fault !== undefined && fault !== before?.fault) this.#report(new Error(fault))
    const byName = new Map(users?.filter(isActive).map((user) => [user.username, user]))
    this.#last = users || !before ? { byName, fault } : { ...before, fault }
    return this.#last
  }
}

// A file may change twice within one clock tick, so a file changed this recently is read again despite equal times.
const recentMs = 50

function versionOf(file: string) {
  try {
    // Plain numbers: bigint stats are slower, and these times are exact to less than a microsecond.
    const { ino, size, mtimeMs, ctimeMs } = statSync(file)
    return { id: `${ino} ${size} ${mtimeMs} ${ctimeMs}`, isRecent: Date.now() - ctimeMs < recentMs }
  } catch {
    return { id: 'unreadable', isRecent: false } // The read that follows throws the reason.
  }
}

/** Valid users (duplicate names excluded), and all faults. `users` is undefined if the file is unreadable or not JSON. */
function parseUsers(file: string, read: () => string): { users?: User[]; fault?: Error } {
  try {
    // Editors of Windows write a byte order mark.
    const json: unknown = JSON.parse(read().replace(/^\ufeff/, ''))
    const { error } = UserList.safeParse(json, asOnce)
    const { users: entries } = Entries.catch({ users: [] }).parse(json, asOnce)
    const named = Map.groupBy(entries, (entry) => Named.safeParse(entry, asOnce).data?.username)
    const users = entries
      .flatMap((entry) => User.safeParse(entry, asOnce).data ?? [])
      .filter(({ username }) => named.get(username)?.length === 1)
    return { users, ...(error && { fault: invalid(file, error) }) }
  } catch (error) {
    return { fault: invalid(file, error) }
  }
}

// jitless: compiling a parser takes longer than parsing once.
const asOnce = { error: describeIssue, jitless: true }

const Entries = z.object({ users: z.array(z.unknown()) })
const Named = z.object({ username: Username })

function explain(error: unknown): string {
  if (error instanceof z.ZodError) {
    return error.issues.map(({ path, message }) => [...path, message].join(' ')).join('; ')
  }
  // A JSON error quotes the text around the fault, which may be a password hash.
  if (error instanceof SyntaxError) return 'it is not JSON'
  return error instanceof Error ? error.message : String(error)
}
