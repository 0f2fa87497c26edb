/** The milliseconds within which this share was answered. */
export const at = (values: number[], share: number) =>
  Math.round((values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1] ?? 0) * 10) / 10
