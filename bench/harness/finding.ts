import { median } from './rounds.ts'

/** A bound on our figure, on its ratio to another's, or on the difference. */
export interface Goal {
  of: 'figure' | 'ratio' | 'difference'
  atLeast?: number
  atMost?: number
}

/** One line of the table: our figures, round by round, and those of one contender. */
export interface Finding {
  work: string
  unit: string
  ours: number[]
  other?: { name: string; figures: number[] }
  goal?: Goal
}

/** One finding for each contender; `goals` has the keys of `figures`. */
export function compare<Other extends string>(
  about: { work: string; unit: string },
  figures: Record<Other | 'ours', number[]>,
  goals: Partial<Record<Other, Goal>>,
): Finding[] {
  const { ours, ...others } = figures
  return Object.entries<number[]>(others).map(([name, theirs]) => {
    const goal = Object.entries<Goal | undefined>(goals).find(([about]) => about === name)?.[1]
    return { ...about, ours, other: { name, figures: theirs }, ...(goal && { goal }) }
  })
}

/** The value that the goal bounds: the median over rounds, each with a turn of both. */
export function resultOf({ ours, other, goal }: Finding): number {
  if (!other || goal?.of === 'figure') return median(ours)
  const pairs = ours.map((figure, round) => [figure, other.figures[round] ?? Number.NaN] as const)
  return goal?.of === 'difference'
    ? median(pairs.map(([one, two]) => one - two))
    : median(pairs.map(([one, two]) => one / two))
}

/** Whether the goal is met; undefined without a goal. */
export function isMet(finding: Finding): boolean | undefined {
  const { goal } = finding
  if (!goal) return undefined
  const value = resultOf(finding)
  return value >= (goal.atLeast ?? -Infinity) && value <= (goal.atMost ?? Infinity)
}
