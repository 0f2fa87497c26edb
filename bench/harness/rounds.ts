import { settings } from './settings.ts'

/** What can be measured in turn with others: one turn gives one figure. */
export type Turn = () => Promise<number>

/** Gives each contender its turn in every round (A, B, C, A, B, C …), so that a slow minute of the machine meets all. */
export async function alternate<Name extends string>(
  contenders: Record<Name, Turn>,
  rounds = settings.rounds,
): Promise<Record<Name, number[]>> {
  // Both are records of the same names: Object.keys and fromEntries forget that.
  const names = Object.keys(contenders) as Name[]
  const figures = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<
    Name,
    number[]
  >
  for (let round = 0; round < rounds; round += 1) {
    for (const name of names) figures[name].push(await contenders[name]())
  }
  return figures
}

/** The figure that a share of all are below; `figures` may come in any order. */
export function quantile(figures: number[], share: number): number {
  const sorted = figures.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export const median = (figures: number[]) => quantile(figures, 0.5)
