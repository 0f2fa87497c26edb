import { type Argon2Parameters, argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

/** What one guess costs: memory in KiB, passes over it, lanes. */
export interface Cost {
  memory: number
  passes: number
  lanes: number
}

/** A password as it is kept: never the password itself. */
export interface Phc {
  cost: Cost
  salt: Buffer
  hash: Buffer
}

/** The least that OWASP advises for argon2id: 19 MiB, 2 passes, 1 lane. */
export const defaultCost: Cost = { memory: 19_456, passes: 2, lanes: 1 }

export const shortestPassword = 8
export const longestPassword = 1024

/** Hashes a password with a new random salt into a PHC string. Does not judge whether the password is a good one. */
export async function hashPassword(password: string, cost = defaultCost): Promise<string> {
  const salt = randomBytes(16)
  const hash = await derive(password, { cost, salt, hash: Buffer.alloc(32) })
  return formatPhc({ cost, salt, hash })
}

/** Says whether this is the password of a kept PHC string, in constant time; a text that is none has no password. */
export async function verifyPassword(text: string, password: string): Promise<boolean> {
  const kept = parsePhc(text)
  if (!kept) return false
  return timingSafeEqual(kept.hash, await derive(password, kept))
}

/** Reads `$argon2id$v=19$m=…,t=…,p=…$salt$hash` in its one canonical spelling and within our bounds, or nothing. */
export function parsePhc(text: string): Phc | undefined {
  const groups = phcPattern.exec(text)?.groups
  if (!groups) return undefined
  const { m = '', t = '', p = '', salt = '', hash = '' } = groups
  const cost = { memory: Number(m), passes: Number(t), lanes: Number(p) }
  const phc = { cost, salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') }
  return isWithinBounds(phc) && formatPhc(phc) === text ? phc : undefined
}

export function formatPhc({ cost, salt, hash }: Phc): string {
  const parameters = `m=${cost.memory},t=${cost.passes},p=${cost.lanes}`
  return `$argon2id$v=19$${parameters}$${encode(salt)}$${encode(hash)}`
}

/** Says whether guessing this one is cheaper than guessing one that we would make today. */
export function needsRehash(text: string): boolean {
  const cost = parsePhc(text)?.cost
  return !cost || cost.memory < defaultCost.memory || cost.passes < defaultCost.passes
}

// https://github.com/P-H-C/phc-string-format: decimal numbers without leading zeros, base64 without padding.
const phcPattern =
  /^\$argon2id\$v=19\$m=(?<m>[1-9]\d{0,6}),t=(?<t>[1-9]\d?),p=(?<p>[1-9]\d?)\$(?<salt>[A-Za-z0-9+/]{11,86})\$(?<hash>[A-Za-z0-9+/]{22,86})$/

// The upper bounds keep a foreign line in the users file from taking the whole machine at each login; the lower
// ones are those of RFC 9106 (3.1), below which Node throws.
function isWithinBounds({ cost, salt, hash }: Phc): boolean {
  const { memory, passes, lanes } = cost
  const isAffordable = memory <= 262_144 && passes <= 16 && lanes <= 16
  return isAffordable && memory >= 8 * lanes && isBetween(8, salt, 64) && isBetween(16, hash, 64)
}

const isBetween = (least: number, bytes: Buffer, most: number) =>
  bytes.length >= least && bytes.length <= most

const encode = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')

const argon2Async: (algorithm: 'argon2id', parameters: Argon2Parameters) => Promise<Buffer> =
  promisify(argon2)

// NFC, so that the same password typed on another keyboard is the same bytes (RFC 8265, 4.2.2).
const derive = (password: string, { cost, salt, hash }: Phc) =>
  argon2Async('argon2id', {
    message: password.normalize('NFC'),
    nonce: salt,
    memory: cost.memory,
    passes: cost.passes,
    parallelism: cost.lanes,
    tagLength: hash.length,
  })
