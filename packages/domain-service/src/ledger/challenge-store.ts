/** An ACME challenge that was set here. */
export interface StoredChallenge {
  domain: string
  name: string
  value: string
}

/** Which ACME challenges were set, and when: what their clients forget is removed. */
export interface ChallengeStore {
  /** Adds a challenge, or renews its age. @throws {HttpError} 503 or 507 where it cannot be stored. */
  add(challenge: StoredChallenge & { createdAt: number }): Promise<void>
  remove(challenges: StoredChallenge[]): Promise<void>
  /** The challenges at a name, oldest first. */
  list(at: { domain: string; name: string }): Promise<StoredChallenge[]>
  /** Challenges set before a time (milliseconds since 1970), at most 1,000. */
  before(time: number): Promise<StoredChallenge[]>
}
