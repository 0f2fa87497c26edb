/** One of the registrar's limits: so many calls in any window of this length. */
export interface CallLimit {
  calls: number
  window: CallWindow
}

export type CallWindow = 'minute' | 'hour' | 'day'

export const windowMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000 }

/** Parses `20/minute,700/hour,8000/day`; undefined for anything else. */
export function parseRate(text: string): CallLimit[] | undefined {
  const limits = text
    .split(',')
    .map((part) => /^([1-9][0-9]{0,6})\/(minute|hour|day)$/.exec(part.trim()))
  if (!limits.every((match) => match !== null)) return undefined
  // The expression admits only these windows.
  return limits.map(([, calls, window]) => ({
    calls: Number(calls),
    window: window as CallWindow,
  }))
}
