import { type Argon2Parameters, argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import pLimit, { type LimitFunction } from 'p-limit'
import { z } from 'zod'
import * as errors from '../errors.ts'

/** A stored password hash, never the password. */
interface Phc {
  cost: typeof defaultCost
  salt: Buffer
  hash: Buffer
}

/** The cost of one hash: memory in KiB, passes, lanes. OWASP's minimum for argon2id. */
export const defaultCost = { memory: 19_456, passes: 2, lanes: 1 }

export const Password = z.string().max(1024)

/** @throws {HttpError} 400 for fewer than 10 characters, the username, or one of the most common passwords. */
export async function requireStrongPassword(password: string, username: string): Promise<void> {
  const text = password.normalize('NFC').toLowerCase()
  if ([...text].length < 10) throw errors.weakPassword()
  if (text === username.toLowerCase()) throw errors.weakPassword('A password must not be the username')
  // Loaded on demand: it takes 4 MB, and only setting a password needs it.
  const { dictionary } = await import('@zxcvbn-ts/language-common')
  if (dictionary['passwords-common'].includes(text))
    throw errors.weakPassword('This password is among the most common ones: choose another')
}

/** Hashes a password with a new random salt into a PHC string. Does not check its strength. */
export async function hashPassword(password: string, cost = defaultCost): Promise<string> {
  const salt = randomBytes(16)
  const hash = await derive(password, { cost, salt, hash: Buffer.alloc(32) })
  return formatPhc({ cost, salt, hash })
}

/** Whether the password matches a stored PHC string, compared in constant time; false for an invalid string. */
export async function verifyPassword(text: string, password: string): Promise<boolean> {
  const stored = parsePhc(text)
  if (!stored) return false
  return timingSafeEqual(stored.hash, await derive(password, stored))
}

/** Parses `$argon2id$v=19$m=…,t=…,p=…$salt$hash` in canonical spelling and within our bounds; else undefined. */
export function parsePhc(text: string): Phc | undefined {
  const groups = phcPattern.exec(text)?.groups
  if (!groups) return undefined
  const { m = '', t = '', p = '', salt = '', hash = '' } = groups
  const cost = { memory: Number(m), passes: Number(t), lanes: Number(p) }
  const phc = { cost, salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') }
  const { memory, passes, lanes } = cost
  const isAffordable = memory >= 8 * lanes && memory <= 262_144 && passes <= 16 && lanes <= 16
  return isAffordable && formatPhc(phc) === text ? phc : undefined
}

/** Dummy hash for unknown usernames: no password matches it, and verifying it costs as much as a real one. */
export function makeDummyHash(real: string | undefined): string {
  const cost = (real === undefined ? undefined : parsePhc(real)?.cost) ?? defaultCost
  return formatPhc({ cost, salt: randomBytes(16), hash: randomBytes(32) })
}

/** Runs password hashes (19 MiB each) two at a time. Callers check `isQueueFull` first. */
export const createHashQueue = () => pLimit(2)

/** 32 hashes are queued at most. */
export const isQueueFull = (queue: LimitFunction) => queue.pendingCount >= 32

export function formatPhc({ cost, salt, hash }: Phc): string {
  const parameters = `m=${cost.memory},t=${cost.passes},p=${cost.lanes}`
  return `$argon2id$v=19$${parameters}$${encode(salt)}$${encode(hash)}`
}

// https://github.com/P-H-C/phc-string-format: decimal numbers without leading zeros, base64 without padding. Salts have 8
// to 64 bytes, hashes 16 to 64. Upper bounds: a hand-edited users file must not exhaust the machine at each login. Lower
// bounds: RFC 9106 (3.1), below which Node throws.
const phcPattern =
  /^\$argon2id\$v=19\$m=(?<m>[1-9]\d{0,6}),t=(?<t>[1-9]\d?),p=(?<p>[1-9]\d?)\$(?<salt>[A-Za-z0-9+/]{11,86})\$(?<hash>[A-Za-z0-9+/]{22,86})$/

const encode = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')

const argon2Async: (algorithm: 'argon2id', parameters: Argon2Parameters) => Promise<Buffer> = promisify(argon2)

// NFC: the same password typed on another keyboard gives the same bytes (RFC 8265, 4.2.2).
const derive = (password: string, { cost, salt, hash }: Phc) =>
  argon2Async('argon2id', {
    message: password.normalize('NFC'),
    nonce: salt,
    memory: cost.memory,
    passes: cost.passes,
    parallelism: cost.lanes,
    tagLength: hash.length,
  })
