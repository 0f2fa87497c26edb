// A preload for services whose clients may stand still while they stop, as on a busy machine: the limits of a stop, 9 and
// 10 seconds, become an hour.

const { setTimeout } = globalThis
const stopLimits = [9_000, 10_000]

globalThis.setTimeout = Object.assign(
  (run: () => void, ms?: number, ...args: []) =>
    setTimeout(run, ms !== undefined && stopLimits.includes(ms) ? 3_600_000 : ms, ...args),
  setTimeout,
)
