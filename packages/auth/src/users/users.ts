import type { User } from './user.ts'

/** Who may log in, always current. */
export interface Users {
  find(username: string): Promise<User | undefined>
  /** For a login: the user, and the hash to verify the password against, which for an unknown username matches none. */
  findLogin(username: string): Promise<{ user: User | undefined; hash: string }>
}

/** The users as a whole, for the commands. */
export interface UserStore {
  /** Names the store in messages. */
  readonly name: string
  list(): Promise<User[]>
  /**
   * Replaces the users by the result of `change`, atomically and exclusively. Nothing changes if `change` throws.
   */
  update(change: (users: User[]) => User[]): Promise<void>
}
