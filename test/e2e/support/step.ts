/** Runs one step and prints its name, result and duration. */
export async function step<Result>(what: string, act: () => Promise<Result>): Promise<Result> {
  const began = Date.now()
  try {
    const result = await act()
    const suffix = typeof result === 'string' ? `: ${result}` : ''
    process.stdout.write(`ok   ${what}${suffix} (${((Date.now() - began) / 1000).toFixed(1)} s)\n`)
    return result
  } catch (error) {
    process.stdout.write(`FAIL ${what}\n`)
    throw error
  }
}

/** Polls until the result is not undefined. */
export async function until<Result>(
  what: string,
  ask: () => Promise<Result | undefined>,
  seconds = 90,
): Promise<Result> {
  const deadline = Date.now() + seconds * 1000
  for (;;) {
    const result = await ask()
    if (result !== undefined) return result
    if (Date.now() > deadline) throw new Error(`not within ${seconds} s: ${what}`)
    await new Promise((wake) => setTimeout(wake, 200))
  }
}
