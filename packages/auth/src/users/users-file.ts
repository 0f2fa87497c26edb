import { existsSync, readFileSync } from 'node:fs'
import { describeIssue, StartRefusedError } from '@domains-and-files/http'
import { updateFile } from '@domains-and-files/persistence'
import { z } from 'zod'
import { changeUsers, type User, UserList } from './user.ts'
import type { UserStore } from './users.ts'

/** @throws {InvalidUsersFile} if the file cannot be read or is not valid. */
export function readUsers(file: string): User[] {
  return parseUsers(file, readText(file))
}

/** The users file as a whole. A missing one has no users. */
export class UserFile implements UserStore {
  readonly name: string

  constructor(file: string) {
    this.name = file
  }

  async list() {
    return existsSync(this.name) ? readUsers(this.name) : []
  }

  update(change: (users: User[]) => User[]) {
    return updateUsers(this.name, change)
  }
}

/** The users file cannot be used. The message names the reason and quotes no content. */
export class InvalidUsersFile extends StartRefusedError {
  constructor(file: string, cause: unknown) {
    super(`Cannot use the users file ${file}: ${explain(cause)}`)
  }
}

/**
 * Replaces the users by the result of `change`, atomically and under a lock between processes. Nothing changes if
 * `change` throws or the file is invalid.
 */
export async function updateUsers(file: string, change: (users: User[]) => User[]): Promise<void> {
  await updateFile(file, (text) => {
    const before = text === undefined ? [] : parseUsers(file, text)
    return `${JSON.stringify({ users: changeUsers(before, change) }, null, 2)}\n`
  })
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new InvalidUsersFile(file, error)
  }
}

function parseUsers(file: string, text: string): User[] {
  try {
    return UserList.parse(JSON.parse(text), { error: describeIssue }).users
  } catch (error) {
    throw new InvalidUsersFile(file, error)
  }
}

function explain(error: unknown): string {
  if (error instanceof z.ZodError) {
    return error.issues.map(({ path, message }) => [...path, message].join(' ')).join('; ')
  }
  // A JSON error quotes the text around the fault, which may be a password hash.
  if (error instanceof SyntaxError) return 'it is not JSON'
  return error instanceof Error ? error.message : String(error)
}
