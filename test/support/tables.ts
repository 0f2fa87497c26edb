/** The cells of each Markdown table row in a section whose first cell is code. Without a heading: of the whole text. */
export function tableRows(text: string, heading?: string): string[][] {
  const start = heading === undefined ? 0 : text.indexOf(`\n${heading}\n`)
  if (start < 0) throw new Error(`no section ${heading}`)
  const next = heading === undefined ? -1 : text.indexOf('\n## ', start + 1)
  return text
    .slice(start, next < 0 ? undefined : next)
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) =>
      line
        .split('|')
        .map((cell) => cell.trim())
        .slice(1, -1),
    )
}
