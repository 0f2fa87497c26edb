import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'

// Commands by their Debian package.
const needed = {
  wrk: 'wrk',
  nginx: 'nginx-core',
  caddy: 'caddy',
  curl: 'curl',
  openssl: 'openssl',
  taskset: 'util-linux',
}

/** Installs missing programs from Debian; a row whose peer is missing reports that itself. */
export async function installPeers(): Promise<void> {
  const commands = Object.entries(needed)
  const found = await Promise.all(commands.map(([command]) => isInstalled(command)))
  const missing = commands.flatMap(([, name], at) => (found[at] ? [] : [name]))
  if (missing.length === 0) return
  process.stderr.write(`installing ${missing.join(', ')}\n`)
  await runLoudly('apt-get', ['update', '-q'])
  const options = ['-q', '-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=600']
  await runLoudly('apt-get', ['install', ...options, ...missing])
}

const isInstalled = (command: string) =>
  promisify(execFile)('which', [command]).then(
    () => true,
    () => false,
  )

async function runLoudly(command: string, args: string[]) {
  // At runlevel 1 packages do not start their servers.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const child = spawn(command, args, { env, stdio: ['ignore', 'ignore', 'inherit'] })
  await once(child, 'exit').catch(() => undefined)
}
