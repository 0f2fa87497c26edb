/**
 * Calls `task` now and then again `delay()` milliseconds after it ended, while the page is visible, until `signal`
 * aborts.
 * @param {() => Promise<unknown>} task
 * @param {() => number} delay
 * @param {AbortSignal} signal
 */
export function poll(task, delay, signal) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  const run = async () => {
    clearTimeout(timer)
    if (document.visibilityState === 'visible') await task()
    if (!signal.aborted) timer = setTimeout(() => void run(), delay())
  }
  document.addEventListener('visibilitychange', () => void run(), { signal })
  signal.addEventListener('abort', () => clearTimeout(timer))
  void run()
}
