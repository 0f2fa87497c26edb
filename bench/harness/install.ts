import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'

// The command, and the package of Debian that brings it.
const needed = {
  wrk: 'wrk',
  nginx: 'nginx-core',
  caddy: 'caddy',
  curl: 'curl',
  openssl: 'openssl',
  taskset: 'util-linux',
}

/** Installs from Debian what the bench runs and this machine lacks; a row whose peer cannot be had says so itself. */
export async function installPeers(): Promise<void> {
  const commands = Object.entries(needed)
  const found = await Promise.all(commands.map(([command]) => isThere(command)))
  const missing = commands.flatMap(([, name], at) => (found[at] ? [] : [name]))
  if (missing.length === 0) return
  process.stderr.write(`installing ${missing.join(', ')}\n`)
  await runLoudly('apt-get', ['update', '-q'])
  const options = ['-q', '-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=600']
  await runLoudly('apt-get', ['install', ...options, ...missing])
}

const isThere = (command: string) =>
  promisify(execFile)('which', [command]).then(
    () => true,
    () => false,
  )

async function runLoudly(command: string, args: string[]) {
  // At runlevel 1 no package starts the server that it brings.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const child = spawn(command, args, { env, stdio: ['ignore', 'ignore', 'inherit'] })
  await once(child, 'exit').catch(() => undefined)
}
