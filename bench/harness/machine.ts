import {
  closeSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { cpus, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { run } from './program.ts'
import { median } from './rounds.ts'
import { settings } from './settings.ts'

/** The head of RESULTS.md: what was measured on what, and how. */
export async function describeMachine(): Promise<string> {
  const processors = cpus()
  const version = async (command: string[], pattern: RegExp) => {
    const printed = await run(['sh', '-c', `${command.join(' ')} 2>&1 || true`])
    return pattern.exec(printed)?.[1] ?? 'none'
  }
  const versions = [
    `Node ${process.versions.node}`,
    `Fastify ${versionOf('fastify')}`,
    `@fastify/jwt ${versionOf('@fastify/jwt')}`,
    `@fastify/static ${versionOf('@fastify/static')}`,
    `undici ${versionOf('undici')}`,
    `nginx ${await version(['nginx', '-v'], /nginx\/(\S+)/)}`,
    `Caddy ${await version(['caddy', 'version'], /^v?(\d+\.\d\S*)/m)}`,
    `wrk ${await version(['wrk', '-v'], /wrk (?:debian\/)?(\S+)/)}`,
  ]
  return `# Results

Made by \`npm run bench\`: ${settings.rounds} rounds, in each of which all contenders have their turn one after the other,
${settings.seconds} seconds each, after a warm-up. Figures are medians with the least and the greatest; a result is the median of what
the rounds say of ours and the other's turn in them.

- Machine: ${processors.length} cores (${processors[0]?.model.trim()}), ${Math.round(totalmem() / 2 ** 30)} GiB of memory; 4 KiB written and flushed in ${measureFlush().toFixed(2)} ms.
- Versions: ${versions.join(', ')}.
- Servers run on one core, the load (one thread of wrk, 32 connections, unless said otherwise) on the other.
- Logs: ours writes one line for each request (\`info\`, the default) to a file; so do the bare routes of Fastify and
  @fastify/static, without the redaction of ours. nginx and Caddy write none, as Caddy does by default.
- The limit "bare Fastify" is one route that gives the same body with the same headers as ours, known beforehand.
- Before each measurement the answers are compared: the same bytes and type, a length, a connection that stays open.
`
}

function versionOf(name: string): string {
  const file = join(import.meta.dirname, '../node_modules', name, 'package.json')
  const told: { version: string } = JSON.parse(readFileSync(file, 'utf8'))
  return told.version
}

// Milliseconds of the median of 200.
function measureFlush(): number {
  const folder = mkdtempSync(join(tmpdir(), 'bench-flush-'))
  const bytes = Buffer.alloc(4096, 1)
  const times = Array.from({ length: 200 }, (_, at) => {
    const began = performance.now()
    const file = openSync(join(folder, String(at)), 'w')
    writeSync(file, bytes)
    fsyncSync(file)
    closeSync(file)
    return performance.now() - began
  })
  rmSync(folder, { recursive: true })
  return median(times)
}
