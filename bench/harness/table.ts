import { type Finding, isMet, resultOf } from './finding.ts'
import { median } from './rounds.ts'

const header = ['Work', 'Unit', 'Ours', 'Compared with', 'Its figure', 'Result', 'Goal', '']

/** A Markdown table, readable in a terminal too. */
export function writeTable(findings: Finding[]): string {
  const lines = findings.map((finding, at) => {
    const { work, unit, ours, other } = finding
    const isSame = findings[at - 1]?.work === work
    return [
      isSame ? '' : work,
      unit,
      spread(ours),
      other?.name ?? '',
      other ? spread(other.figures) : '',
      writeResult(finding),
      writeGoal(finding),
      { true: 'met', false: '**missed**', undefined: '' }[String(isMet(finding))] ?? '',
    ]
  })
  const widths = header.map((_, column) =>
    Math.max(...[header, ...lines].map((cells) => cells[column]?.length ?? 0), 3),
  )
  const write = (cells: string[]) => `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`
  return [write(header), rule, ...lines.map(write)].join('\n')
}

function writeResult(finding: Finding): string {
  const value = resultOf(finding)
  if (!finding.other || finding.goal?.of === 'figure') return ''
  if (finding.goal?.of === 'difference') return `${value < 0 ? '−' : '+'}${round(Math.abs(value))}`
  return `${value.toFixed(2)} ×`
}

function writeGoal({ goal, unit }: Finding): string {
  if (!goal) return ''
  const sign = goal.atLeast === undefined ? '≤' : '≥'
  const bound = goal.atLeast ?? goal.atMost
  if (goal.of === 'ratio') return `${sign} ${bound} ×`
  return `${sign} ${goal.of === 'difference' ? '+' : ''}${bound} ${unit}`
}

// Median, minimum and maximum.
function spread(figures: number[]): string {
  if (figures.length < 2) return round(median(figures))
  return `${round(median(figures))} (${round(Math.min(...figures))}–${round(Math.max(...figures))})`
}

// Three significant digits.
function round(figure: number): string {
  if (figure >= 100) return Math.round(figure).toLocaleString('en-US')
  return figure.toLocaleString('en-US', { maximumSignificantDigits: 3 })
}
