import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Finding } from './harness/finding.ts'
import { installPeers } from './harness/install.ts'
import { describeMachine } from './harness/machine.ts'
import { settings } from './harness/settings.ts'
import { writeTable } from './harness/table.ts'
import { rows } from './scenarios/rows.ts'

// Compares our services with peers on this machine, in turns, and prints one table; asserts nothing. A run of all rows also
// writes RESULTS.md. `BENCH_ROUNDS=5 BENCH_SECONDS=3 npm run bench -- [rows…]`

const chosen = Object.entries(rows).filter(([name]) => settings.rows.length === 0 || settings.rows.includes(name))
const unknown = settings.rows.filter((name) => !(name in rows))
if (unknown.length > 0) {
  process.stderr.write(`No row ${unknown.join(', ')}; there are: ${Object.keys(rows).join(', ')}\n`)
  process.exit(1)
}

const root = mkdtempSync(join(tmpdir(), 'bench-'))
process.on('exit', () => rmSync(root, { recursive: true, force: true }))
await installPeers()
const findings: Finding[] = []
const failures: string[] = []
for (const [name, measure] of chosen) {
  process.stderr.write(`${name} …\n`)
  const folder = join(root, name)
  mkdirSync(folder)
  try {
    const found = await measure(folder)
    findings.push(...found)
    process.stderr.write(`${writeTable(found)}\n`)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    failures.push(`- \`${name}\` could not be measured: ${reason.trim().replaceAll('\n', ' ')}`)
    process.stderr.write(`${failures.at(-1)}\n`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const report = [writeTable(findings), ...failures].join('\n')
process.stdout.write(`\n${report}\n`)
if (settings.rows.length === 0) {
  const file = join(import.meta.dirname, 'RESULTS.md')
  const limits = readFileSync(join(import.meta.dirname, 'LIMITS.md'), 'utf8')
  writeFileSync(file, `${await describeMachine()}\n${report}\n\n${limits}`)
}
