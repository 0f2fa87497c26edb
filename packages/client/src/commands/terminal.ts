import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

/** A usage error; the program prints it with its usage and exits with status 1. */
export class UsageError extends Error {}

/** Another failure that its message explains; the program prints that alone and exits with status 1. */
export class CommandError extends Error {}

/** Rows as aligned columns. */
export function formatTable(rows: (string | number)[][]): string {
  const widths = rows.reduce<number[]>(
    (widest, row) => row.map((cell, at) => Math.max(widest[at] ?? 0, String(cell).length)),
    [],
  )
  const pad = (cell: string | number, at: number) => String(cell).padEnd(widths[at] ?? 0)
  return rows.map((row) => `${row.map(pad).join('  ').trimEnd()}\n`).join('')
}

/** A progress bar on standard error: only at a terminal. `total` in bytes. Disposing of it ends its line. */
export function openProgressBar(total: number): Disposable & { show: (bytes: number) => void } {
  let shown = -1
  const show = (bytes: number) => {
    const percent = total === 0 ? 100 : Math.floor((bytes / total) * 100)
    if (!process.stderr.isTTY || percent === shown) return
    shown = percent
    const filled = Math.round(percent / 4)
    process.stderr.write(`\r[${'#'.repeat(filled)}${' '.repeat(25 - filled)}] ${percent} %`)
  }
  return { show, [Symbol.dispose]: () => void (shown >= 0 && process.stderr.write('\n')) }
}

/** Creates a directory with its parents. Not by the recursive `mkdir`, which loops in /proc, where none can be created. */
export function makeDirectory(path: string): void {
  if (existsSync(path)) return
  makeDirectory(dirname(path))
  mkdirSync(path)
}
