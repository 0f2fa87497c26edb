import { settings } from './settings.ts'

/** Measures one figure. */
export type Turn = () => Promise<number>

/** Runs contenders in turns (A, B, C, A, B, C …), so that a slow minute of the machine affects all of them. */
export async function alternate<Name extends string>(
  contenders: Record<Name, Turn>,
  rounds = settings.rounds,
): Promise<Record<Name, number[]>> {
  // Both have the same keys, which Object.keys and fromEntries do not know.
  const names = Object.keys(contenders) as Name[]
  const figures = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, number[]>
  for (let round = 0; round < rounds; round += 1) {
    for (const name of names) figures[name].push(await contenders[name]())
  }
  return figures
}

/** The quantile of figures in any order. */
export function quantile(figures: number[], share: number): number {
  const sorted = figures.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export const median = (figures: number[]) => quantile(figures, 0.5)
