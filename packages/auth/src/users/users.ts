import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { defaultCost, formatPhc, parsePhc } from '../login/password.ts'
import { InvalidUsersFile, readUsers, type User } from './users-file.ts'

/**
 * The users file, as it is at each moment: every look at it sees the last change. While the file is broken or gone,
 * the last good one counts, and `report` is told once for each broken state.
 */
export class Users {
  readonly #file: string
  readonly #report: (error: Error) => void
  #version = { id: '', isYoung: false }
  #reported = ''
  #byName = new Map<string, User>()
  #decoy = makeDecoy([])

  private constructor(file: string, report: (error: Error) => void) {
    this.#file = file
    this.#report = report
  }

  /**
   * Opens a users file for the life of a service.
   * @throws {InvalidUsersFile} if it is missing or broken now.
   */
  static async open(file: string, report: (error: Error) => void = printError): Promise<Users> {
    const users = new Users(file, report)
    users.#version = readVersion(file)
    users.#load()
    return users
  }

  /** The user of this name, as of now. */
  find(username: string): User | undefined {
    this.#refresh()
    return this.#byName.get(username)
  }

  /** A password that nobody has, and that costs as much to refuse as that of the first user. */
  get decoy(): string {
    return this.#decoy
  }

  // A look at the file costs some microseconds and cannot miss a change, as a watch over a mounted folder can.
  #refresh() {
    const version = readVersion(this.#file)
    if (version.id === this.#version.id && !this.#version.isYoung) return
    this.#version = version // Taken before reading: a change in between is seen by the next look.
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
    this.#decoy = makeDecoy(users)
    this.#reported = ''
  }
}

// A file may change twice within one tick of its clock, so the times of a young one prove nothing: it is read again.
const youthMs = 50

function readVersion(file: string) {
  try {
    const { ino, size, mtimeNs, ctimeNs, ctimeMs } = statSync(file, { bigint: true })
    const isYoung = Date.now() - Number(ctimeMs) < youthMs
    return { id: [ino, size, mtimeNs, ctimeNs].join(' '), isYoung }
  } catch {
    return { id: 'unreadable', isYoung: false } // Reading it then says why.
  }
}

function makeDecoy([first]: User[]): string {
  const cost = (first && parsePhc(first.password)?.cost) ?? defaultCost
  return formatPhc({ cost, salt: randomBytes(16), hash: randomBytes(32) })
}

function printError(error: Error) {
  process.stderr.write(`${error.message}\n`)
}
