import { median } from './rounds.ts'

/** What is asked of a figure: of ours by itself, of ours over the other's, or of ours less the other's. */
export interface Goal {
  of: 'figure' | 'ratio' | 'difference'
  atLeast?: number
  atMost?: number
}

/** One line of the table: our figures, round by round, and those of one that we are compared with. */
export interface Finding {
  work: string
  unit: string
  ours: number[]
  other?: { name: string; figures: number[] }
  goal?: Goal
}

/** Ours beside each of the others, one finding for each; a goal is named like the one it is about. */
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

/** The value that the goal speaks of: the median over the rounds, in each of which both had their turn. */
export function resultOf({ ours, other, goal }: Finding): number {
  if (!other || goal?.of === 'figure') return median(ours)
  const pairs = ours.map((figure, round) => [figure, other.figures[round] ?? Number.NaN] as const)
  return goal?.of === 'difference'
    ? median(pairs.map(([one, two]) => one - two))
    : median(pairs.map(([one, two]) => one / two))
}

/** Whether the goal is met; undefined where there is none. */
export function isMet(finding: Finding): boolean | undefined {
  const { goal } = finding
  if (!goal) return undefined
  const value = resultOf(finding)
  return value >= (goal.atLeast ?? -Infinity) && value <= (goal.atMost ?? Infinity)
}
