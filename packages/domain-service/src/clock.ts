/**
 * Whole milliseconds since 1970 by the clock as it was when this process started. It never jumps, whatever is done to the
 * system's clock meanwhile: for how long something takes, not for when it was.
 */
export const steadyNow = () => Math.round(performance.timeOrigin + performance.now())
