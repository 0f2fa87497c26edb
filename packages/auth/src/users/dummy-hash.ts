import { randomBytes } from 'node:crypto'
import { defaultCost, formatPhc, parsePhc } from '../login/password.ts'

/** A hash that no password matches, as expensive to verify as that of a real user: for unknown usernames. */
export function makeDummyHash(real: string | undefined): string {
  const cost = (real === undefined ? undefined : parsePhc(real)?.cost) ?? defaultCost
  return formatPhc({ cost, salt: randomBytes(16), hash: randomBytes(32) })
}
