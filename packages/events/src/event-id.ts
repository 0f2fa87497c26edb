// Event ids are ULIDs: ten characters of time, then sixteen random ones. Here the first two of the sixteen are a counter:
// twelve characters encode the number from `appendEvents`, so ids sort in the order of these numbers.

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ' // Crockford's base 32.

/** Event numbers per millisecond: a number is milliseconds × 1,024 + counter. */
export const idsPerMs = 1024

export const eventIdPattern = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/

/** The id of the event with this number. `random` distinguishes events of other services with the same number. */
export function eventId(number: number, random = randomTail()): string {
  let text = ''
  for (let rest = number; text.length < 12; rest = Math.floor(rest / 32))
    text = alphabet.charAt(rest % 32) + text
  return text + random
}

/** Lower bound of the ids from this time on, in milliseconds since 1970. */
export const startOfTime = (milliseconds: number) =>
  eventId(milliseconds * idsPerMs, '0'.repeat(14))

/** The time of an event id, in milliseconds since 1970. */
export const timeOfId = (id: string) =>
  [...id.slice(0, 10)].reduce((value, digit) => value * 32 + alphabet.indexOf(digit), 0)

// Uniqueness only, not a secret: cryptographic randomness would cost as much as the insert.
const randomTail = () => {
  let tail = ''
  while (tail.length < 14) tail += alphabet.charAt(Math.random() * 32)
  return tail
}
