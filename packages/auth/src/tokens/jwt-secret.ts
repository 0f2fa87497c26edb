import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, mkdir, open, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { StartRefusedError } from '../start-refused.ts'

/** The secret of `.env.example`: known to everybody, so it keeps nothing secret. */
export const exampleSecret = 'change-me-change-me-change-me-change-me'

interface SecretOptions {
  secret?: string | undefined
  production: boolean
  dataDir: string
  /** Told what is weak, one sentence. */
  warn?: (message: string) => void
}

/**
 * The secret to sign tokens with. Outside production a missing one is made, and kept in the data folder so that
 * tokens survive a restart; a weak one is taken with a warning.
 * @throws {StartRefusedError} in production, if it is missing or weak.
 */
export async function resolveJwtSecret(options: SecretOptions): Promise<string> {
  const { secret, production, dataDir, warn = printLine } = options
  if (!secret && !production) return keepSecret(join(dataDir, 'jwt.secret'))
  if (!secret)
    throw new StartRefusedError('JWT_SECRET is missing: set it to at least 32 random bytes.')
  const fault = findFault(secret)
  if (fault && production) throw new StartRefusedError(`JWT_SECRET ${fault}.`)
  if (fault) warn(`JWT_SECRET ${fault}; in production this service would not start.`)
  return secret
}

function findFault(secret: string): string | undefined {
  if (secret === exampleSecret) return 'is the one of .env.example, which everybody knows'
  return Buffer.byteLength(secret) < shortest ? `must have at least ${shortest} bytes` : undefined
}

const shortest = 32

// Written beside and linked: of two services that start at once, one wins and both read the same whole secret.
async function keepSecret(file: string): Promise<string> {
  if (!existsSync(file)) await makeSecret(file)
  const secret = (await readFile(file, 'utf8')).trim()
  if (Buffer.byteLength(secret) >= shortest) return secret
  throw new StartRefusedError(
    `The secret in ${file} is too short: delete the file, and a new one is made.`,
  )
}

async function makeSecret(file: string) {
  await mkdir(dirname(file), { recursive: true })
  const draft = `${file}.${randomUUID()}.tmp`
  try {
    await using handle = await open(draft, 'wx', 0o600)
    await handle.writeFile(`${randomBytes(32).toString('base64url')}\n`)
    await handle.sync()
    await link(draft, file)
  } catch (error) {
    if (!existsSync(file)) throw error // Otherwise another service was first, and its secret is the one.
  } finally {
    await rm(draft, { force: true })
  }
}

function printLine(message: string) {
  process.stderr.write(`${message}\n`)
}
