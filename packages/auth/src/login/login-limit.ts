import { clientNetwork } from './client-network.ts'

/** Maximum failed logins in `windowMs`. */
export interface LoginLimits {
  windowMs: number
  /** For one username from one client network. */
  perPair: number
  /** For one client network, over all usernames. */
  perNetwork: number
  /** For one username, over all networks. */
  perUsername: number
}

export const defaultLoginLimits: LoginLimits = {
  windowMs: 15 * 60_000,
  perPair: 10,
  perNetwork: 30,
  perUsername: 200,
}

export interface Attempt {
  username: string
  /** Whether the username exists. */
  isUser: boolean
  /** The client's IP address. */
  address: string
}

/** Which limit an attempt reached. */
export type Lockout = 'username and network' | 'network' | 'username'

export type OnLockout = (attempt: Attempt, lockout: Lockout) => void

/** Either the attempt had to wait and was not made, or it was made. */
export interface AttemptOutcome {
  /** 0 if the attempt was made. */
  secondsToWait: number
  isRight: boolean
}

/**
 * Limits failed logins so that guessing is slow, while nobody can lock a user out from another network with a few
 * attempts. Unknown usernames are counted apart: a flood of invented names cannot evict the count of a real one.
 */
export interface LoginLimit {
  /** Seconds until this attempt is allowed; 0 if it is allowed now. */
  secondsToWait(attempt: Attempt): Promise<number>
  /**
   * Makes an attempt if it is allowed now, and counts a failure. A success resets the count of its username and network.
   * An attempt that throws does not count. A running attempt counts as failed, so that concurrent ones cannot pass the
   * limit together.
   */
  run(attempt: Attempt, verify: () => Promise<boolean>): Promise<AttemptOutcome>
}

/** What an attempt is counted by. A network contains no space, so the key of a pair is unambiguous. */
export function keysOf({ username, address }: Attempt): Record<Lockout, string> {
  const network = clientNetwork(address)
  return { 'username and network': `${network} ${username}`, network, username }
}
