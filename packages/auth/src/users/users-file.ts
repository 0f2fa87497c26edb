import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { z } from 'zod'
import { canonizeDomain, Role } from '../authorization.ts'
import { parsePhc } from '../login/password.ts'

/**
 * A name as the users file holds it. Names are compared exactly, `Alice` is not `alice`; only the Unicode spelling is
 * made one (NFC), so that a name does not depend on the keyboard that typed it.
 */
export const Username = z
  .string()
  .normalize('NFC')
  .min(1)
  .max(64)
  .regex(/^[^\p{C}\p{Z}]+$/u, 'must have no spaces and no control characters')

export const Domains = z.array(z.string().transform(readDomain)).min(1)

export const User = z.strictObject({
  username: Username,
  role: Role,
  password: z.string().refine(parsePhc, 'must be an argon2id PHC string'),
  domains: Domains.optional(),
})
export type User = z.infer<typeof User>

const UsersFile = z.strictObject({
  users: z.array(User).refine(areNamesUnique, 'must not name a user twice'),
})

/**
 * Reads every user of the file.
 * @throws {InvalidUsersFile} if it cannot be read or is not what it must be.
 */
export function readUsers(file: string): User[] {
  try {
    return UsersFile.parse(JSON.parse(fs.readFileSync(file, 'utf8'))).users
  } catch (error) {
    throw new InvalidUsersFile(file, error)
  }
}

/** As `readUsers`, but a file that does not exist holds nobody. */
export const readUsersIfAny = (file: string): User[] => (fs.existsSync(file) ? readUsers(file) : [])

/** The users file cannot be used; says why, and quotes none of it. */
export class InvalidUsersFile extends Error {
  constructor(file: string, cause: unknown) {
    super(`The users file ${file} cannot be used: ${explain(cause)}`)
  }
}

/**
 * Replaces the users by what `change` makes of them: the whole file or nothing, and no change of another process is
 * lost. Blocks the process while another one holds the lock, so it is for start and command line, not for requests.
 */
export function updateUsers(file: string, change: (users: User[]) => User[]): void {
  fs.mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  // A mounted secret is a link to a file elsewhere: that one is changed, the link stays.
  const target = fs.existsSync(file) ? fs.realpathSync(file) : file
  holdLock(target, () => {
    const before = readUsersIfAny(target)
    const after = UsersFile.parse({ users: change(before) })
    writeFileAtomic(target, `${JSON.stringify(after, null, 2)}\n`)
  })
}

/** Writes a private file whole or not at all, durably. */
export function writeFileAtomic(file: string, text: string): void {
  const draft = `${file}.${randomUUID()}.tmp`
  try {
    const fd = fs.openSync(draft, 'wx', 0o600)
    try {
      fs.writeFileSync(fd, text)
      if (isRoot) giveToOwner(draft, file)
      fs.fsyncSync(fd)
    } finally {
      fs.closeSync(fd)
    }
    fs.renameSync(draft, file)
  } finally {
    fs.rmSync(draft, { force: true })
  }
  flushFolder(dirname(file))
}

const isRoot = process.getuid?.() === 0

// Root writes for a service that may run as another user, who must still be able to read and change the file.
function giveToOwner(made: string, file: string) {
  const { uid, gid } = fs.statSync(fs.existsSync(file) ? file : dirname(file))
  fs.chownSync(made, uid, gid)
}

function flushFolder(folder: string) {
  const fd = fs.openSync(folder, 'r')
  try {
    fs.fsyncSync(fd)
  } finally {
    fs.closeSync(fd)
  }
}

// Node has no flock. An empty SQLite database is one: the kernel frees it when its holder dies, however it dies, so a
// lock is never stale. It stays on the disk: removing it would let two processes lock two files of one name.
function holdLock(file: string, run: () => void) {
  const lock = `${file}.lock`
  const database = new DatabaseSync(lock, { timeout: 10_000 })
  try {
    takeLock(database, lock)
    if (isRoot) giveToOwner(lock, file)
    run()
  } finally {
    database.close()
  }
}

function takeLock(database: DatabaseSync, lock: string) {
  try {
    database.exec('BEGIN EXCLUSIVE')
  } catch (cause) {
    throw new Error(`The lock ${lock} cannot be had: ${explain(cause)}`, { cause })
  }
}

function readDomain(text: string, context: z.RefinementCtx) {
  const domain = canonizeDomain(text)
  if (domain) return domain
  context.addIssue({ code: 'custom', message: 'must be a domain, or one after *.' })
  return z.NEVER
}

function areNamesUnique(users: { username: string }[]) {
  return new Set(users.map(({ username }) => username)).size === users.length
}

function explain(error: unknown): string {
  if (error instanceof z.ZodError) return z.prettifyError(error).replaceAll(/\s*\n\s*/g, ' ')
  // A JSON error quotes the text around the fault, which may be a password's hash.
  if (error instanceof SyntaxError) return 'it is not JSON'
  return error instanceof Error ? error.message : String(error)
}
