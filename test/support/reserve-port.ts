import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import net from 'node:net'
import { join } from 'node:path'

/**
 * A port for a server that is going to listen on it again after a stop. No other server of the test run is given it, and it
 * lies below the ports that the kernel assigns by itself (ip_local_port_range): nothing takes it meanwhile.
 */
export async function reservePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_768)
    if ((await isFirst(port)) && (await isFree(port))) return port
  }
}

async function isFirst(port: number): Promise<boolean> {
  const directory = process.env.TEST_RUN_DIRECTORY
  if (!directory) return true
  return mkdir(join(directory, `port-${port}`)).then(
    () => true,
    () => false,
  )
}

async function isFree(port: number): Promise<boolean> {
  const server = net.createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
