import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { defaultCost, formatPhc, parsePhc } from '../login/password.ts'
import { InvalidUsersFile, readUsers, type User } from './users-file.ts'

/**
 * The users of the users file, always current: each look-up checks whether the file has changed. While the file is
 * invalid or missing its last valid content stays in force, and `report` is called once per invalid version.
 */
export class Users {
  readonly #file: string
  readonly #report: (error: Error) => void
  #version = { id: '', isRecent: false }
  #reported = ''
  #byName = new Map<string, User>()
  #dummyHash = makeDummyHash([])

  private constructor(file: string, report: (error: Error) => void) {
    this.#file = file
    this.#report = report
  }

  /** @throws {InvalidUsersFile} if the file is missing or invalid now. */
  static async open(file: string, report: (error: Error) => void = printError): Promise<Users> {
    const users = new Users(file, report)
    users.#version = readVersion(file)
    users.#load()
    return users
  }

  find(username: string): User | undefined {
    this.#refresh()
    return this.#byName.get(username)
  }

  /** A hash that no password matches, as expensive to verify as the first user's: for unknown usernames. */
  get dummyHash(): string {
    return this.#dummyHash
  }

  // A stat costs microseconds. A watch can miss changes in mounted directories.
  #refresh() {
    const version = readVersion(this.#file)
    if (version.id === this.#version.id && !this.#version.isRecent) return
    this.#version = version // Before reading: the next look-up then sees a change in between.
    try {
      this.#load()
    } catch (error) {
      if (!(error instanceof InvalidUsersFile)) throw error
      if (version.id !== this.#reported) this.#report(error)
      this.#reported = version.id
    }
  }

  #load() {
    const users = readUsers(this.#file)
    this.#byName = new Map(users.map((user) => [user.username, user]))
    this.#dummyHash = makeDummyHash(users)
    this.#reported = ''
  }
}

// A file may change twice within one clock tick, so a recent one is read again although its times are equal.
const recentMs = 50

function readVersion(file: string) {
  try {
    const { ino, size, mtimeNs, ctimeNs, ctimeMs } = statSync(file, { bigint: true })
    const isRecent = Date.now() - Number(ctimeMs) < recentMs
    return { id: [ino, size, mtimeNs, ctimeNs].join(' '), isRecent }
  } catch {
    return { id: 'unreadable', isRecent: false } // Reading it gives the reason.
  }
}

function makeDummyHash([first]: User[]): string {
  const cost = (first && parsePhc(first.password)?.cost) ?? defaultCost
  return formatPhc({ cost, salt: randomBytes(16), hash: randomBytes(32) })
}

function printError(error: Error) {
  process.stderr.write(`${error.message}\n`)
}
