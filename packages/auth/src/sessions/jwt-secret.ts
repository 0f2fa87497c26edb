import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { StartRefusedError } from '@domains-and-files/http'
import { updateFile } from '@domains-and-files/persistence'

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
  const { secret, production, dataDir, warn = console.error } = options
  if (!secret && !production) return storedSecret(join(dataDir, 'jwt.secret'))
  const fault = faultOf(secret)
  if (secret && !fault) return secret
  if (!secret || production || secret === exampleSecret)
    throw new StartRefusedError(`JWT_SECRET ${fault}: set it to at least 32 random bytes.`)
  warn(`JWT_SECRET ${fault}; in production this service would not start.`)
  return secret
}

function faultOf(secret: string | undefined): string | undefined {
  if (!secret) return 'is missing'
  if (secret === exampleSecret) return 'is a published example'
  const isShort = Buffer.byteLength(secret) < minSecretBytes
  return isShort ? `has fewer than ${minSecretBytes} bytes` : undefined
}

/** Minimum key size for HS256 (RFC 7518, 3.2). */
export const minSecretBytes = 32

async function storedSecret(file: string): Promise<string> {
  // Created under a lock: services that start together share one secret.
  if (!existsSync(file))
    await updateFile(
      file,
      (text) => text ?? `${randomBytes(minSecretBytes).toString('base64url')}\n`,
    )
  const secret = (await readFile(file, 'utf8')).trim()
  if (Buffer.byteLength(secret) >= minSecretBytes) return secret
  throw new StartRefusedError(
    `The secret in ${file} is too short: delete the file to have a new one generated.`,
  )
}
