import pLimit, { type LimitFunction } from 'p-limit'

/** Runs password hashes (19 MiB each) two at a time; `pendingCount` tells how many wait. */
export type HashQueue = LimitFunction

/** Callers check `isQueueFull` before they queue a hash. */
export const createHashQueue = (): HashQueue => pLimit(2)

/** Whether the maximum of 32 hashes is queued. */
export const isQueueFull = (queue: HashQueue) => queue.pendingCount >= 32
