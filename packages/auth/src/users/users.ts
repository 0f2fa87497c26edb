import { randomBytes } from 'node:crypto'
import { FileView } from '@domains-and-files/persistence'
import { defaultCost, formatPhc, parsePhc } from '../login/password.ts'
import { readUsers, type User } from './users-file.ts'

/**
 * The users of the users file, always current. While the file is invalid or missing its last valid content stays in
 * force, and `report` is called once per invalid version.
 */
export class Users {
  readonly #view: FileView<{ byName: Map<string, User>; dummyHash: string }>

  /** @throws {InvalidUsersFile} if the file is missing or invalid now. */
  constructor(file: string, report: (error: unknown) => void) {
    const read = () => {
      const users = readUsers(file)
      const byName = new Map(users.map((user) => [user.username, user]))
      return { byName, dummyHash: makeDummyHash(users) }
    }
    this.#view = new FileView(file, read, report)
  }

  find(username: string): User | undefined {
    return this.#view.current.byName.get(username)
  }

  /** A hash that no password matches, as expensive to verify as the first user's: for unknown usernames. */
  get dummyHash(): string {
    return this.#view.current.dummyHash
  }
}

function makeDummyHash([first]: User[]): string {
  const cost = (first && parsePhc(first.password)?.cost) ?? defaultCost
  return formatPhc({ cost, salt: randomBytes(16), hash: randomBytes(32) })
}
