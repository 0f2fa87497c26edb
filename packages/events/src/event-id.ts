// Ids of events are ULIDs: ten characters of time, sixteen that tell apart what has the same time. Here two of these
// sixteen count, so that ids are in the order of the numbers that `appendEvents` takes.

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ' // Crockford's base 32.

/** Events that can have the same millisecond. */
export const idsPerMs = 1024

export const eventIdPattern = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/

/** The id of the event with this number; `random` tells the services apart that give the same number. */
export const eventId = (number: number, random = randomTail()) => encode(number, 12) + random

/** What is after the ids of this number and before those of the next one. */
export const endOfNumber = (number: number) => eventId(number, 'Z'.repeat(14))

/** What is before all ids since this time, in milliseconds since 1970. */
export const startOfTime = (milliseconds: number) =>
  eventId(milliseconds * idsPerMs, '0'.repeat(14))

/** Milliseconds since 1970. */
export const timeOfId = (id: string) =>
  [...id.slice(0, 10)].reduce((value, digit) => value * 32 + alphabet.indexOf(digit), 0)

function encode(value: number, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest = Math.floor(rest / 32))
    text = alphabet.charAt(rest % 32) + text
  return text
}

// Tells ids apart and protects nothing: bytes of the system would cost as much as the insert.
const randomTail = () => {
  let tail = ''
  while (tail.length < 14) tail += alphabet.charAt(Math.random() * 32)
  return tail
}
