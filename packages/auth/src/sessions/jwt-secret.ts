import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, mkdir, open, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { StartRefusedError } from '@domains-and-files/http'

/** The secret that earlier versions of `.env.example` contained: public, so it is refused everywhere. */
export const exampleSecret = 'change-me-change-me-change-me-change-me'

interface SecretOptions {
  secret?: string | undefined
  production: boolean
  dataDir: string
  /** Receives one sentence about a weak secret. Default: standard error. */
  warn?: (message: string) => void
}

/**
 * The secret that signs session tokens. Outside production a missing one is generated and stored in the data directory,
 * so that sessions survive a restart; a short one is accepted with a warning.
 * @throws {StartRefusedError} when it is the public example; in production also when it is missing or short.
 */
export async function resolveJwtSecret(options: SecretOptions): Promise<string> {
  const { secret, production, dataDir, warn = printLine } = options
  if (!secret && !production) return storedSecret(join(dataDir, 'jwt.secret'))
  if (!secret)
    throw new StartRefusedError(
      `JWT_SECRET is missing: set it to at least ${minSecretBytes} random bytes.`,
    )
  if (secret === exampleSecret) {
    throw new StartRefusedError(
      'JWT_SECRET is a published example, so anybody could forge tokens: set it to at least 32 random bytes, or in development leave it empty.',
    )
  }
  if (Buffer.byteLength(secret) >= minSecretBytes) return secret
  const fault = `JWT_SECRET must have at least ${minSecretBytes} bytes`
  if (production) throw new StartRefusedError(`${fault}.`)
  warn(`${fault}; in production this service would not start.`)
  return secret
}

/** As RFC 7518, 3.2, requires of a key of HS256. */
export const minSecretBytes = 32

async function storedSecret(file: string): Promise<string> {
  if (!existsSync(file)) await createSecret(file)
  const secret = (await readFile(file, 'utf8')).trim()
  if (Buffer.byteLength(secret) >= minSecretBytes) return secret
  throw new StartRefusedError(
    `The secret in ${file} is too short: delete the file to have a new one generated.`,
  )
}

// Written aside and hard-linked: of two services that start together one wins, and both read the same complete secret.
async function createSecret(file: string) {
  await mkdir(dirname(file), { recursive: true })
  const temporary = `${file}.${randomUUID()}.tmp`
  try {
    await using handle = await open(temporary, 'wx', 0o600)
    await handle.writeFile(`${randomBytes(minSecretBytes).toString('base64url')}\n`)
    await handle.sync()
    await link(temporary, file)
  } catch (error) {
    if (!existsSync(file)) throw error // Otherwise another service was first, and its secret is valid.
  } finally {
    await rm(temporary, { force: true })
  }
}

function printLine(message: string) {
  process.stderr.write(`${message}\n`)
}
