const windowMs = 4000

/** The speed of something that grows, averaged over the last seconds. */
export class SpeedMeter {
  /** @type {{ at: number, value: number }[]} */
  #samples = []

  /** @param {number} value @param {number} [now] */
  add(value, now = performance.now()) {
    this.#samples = [...this.#samples.filter(({ at }) => now - at < windowMs), { at: now, value }]
  }

  /** Units a second; 0 while it is not known. */
  get perSecond() {
    const first = this.#samples[0]
    const last = this.#samples.at(-1)
    if (!first || !last || last.at - first.at < 200) return 0
    return Math.max(0, ((last.value - first.value) * 1000) / (last.at - first.at))
  }
}
