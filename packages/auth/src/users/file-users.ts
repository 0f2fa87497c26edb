import { FileView } from '@domains-and-files/persistence'
import { makeDummyHash } from './dummy-hash.ts'
import type { User } from './user.ts'
import type { Users } from './users.ts'
import { readUsers } from './users-file.ts'

/**
 * The users of the users file. While the file is invalid or missing its last valid content stays in force, and `report`
 * is called once per invalid version.
 */
export class FileUsers implements Users {
  readonly #view: FileView<{ byName: Map<string, User>; dummyHash: string }>

  /** @throws {InvalidUsersFile} if the file is missing or invalid now. */
  constructor(file: string, report: (error: unknown) => void) {
    const read = () => {
      const users = readUsers(file)
      const byName = new Map(users.map((user) => [user.username, user]))
      return { byName, dummyHash: makeDummyHash(users[0]?.password) }
    }
    this.#view = new FileView(file, read, report)
  }

  async find(username: string) {
    return this.#view.current.byName.get(username)
  }

  async findLogin(username: string) {
    const { byName, dummyHash } = this.#view.current
    const user = byName.get(username)
    return { user, hash: user?.password ?? dummyHash }
  }
}
