import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'

// Programs that are told their port, or that listen on it again after a restart. `listen(0)` would give them a port that
// the system may give to any other program before they listen.

/**
 * The first of up to seven consecutive ports that no other test on this machine takes until this process ends: each block
 * of eight ports belongs to the process that listens on its first one.
 */
export async function reservePorts(count = 1): Promise<number> {
  for (;;) {
    const first = firstPort + blockSize * Math.floor(Math.random() * blocks)
    const guard = await listen(first)
    if (!guard) continue
    if (await areFree(first + 1, count)) {
      guards.push(guard.unref())
      return first + 1
    }
    guard.close()
  }
}

const blockSize = 8
// Below the ports that the system gives to clients, unless it gives them nearly all.
const endPort = readEphemeralStart() > 2048 ? readEphemeralStart() : 32_768
const firstPort = Math.max(1024, endPort - 12_000)
const blocks = Math.floor((endPort - firstPort) / blockSize)

/** Those that wait for the end of this process. */
const guards: Server[] = []

function readEphemeralStart(): number {
  try {
    return Number.parseInt(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'), 10)
  } catch {
    return 32_768
  }
}

async function areFree(first: number, count: number): Promise<boolean> {
  for (let port = first; port < first + count; port += 1) {
    const server = await listen(port)
    if (!server) return false
    server.close()
    await once(server, 'close')
  }
  return true
}

/** Undefined if the port is in use. */
async function listen(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port, '127.0.0.1')
  return once(server, 'listening').then(
    () => server,
    () => undefined,
  )
}
