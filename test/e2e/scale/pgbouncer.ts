import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { reservePorts } from '../../support/ports.ts'
import { untilListening } from '../support/until-listening.ts'

// It refuses to run as root.
const nobody = { uid: 65_534, gid: 65_534 }

/** Debian's PgBouncer in transaction mode, before a PostgreSQL server on this machine. */
export async function startPgBouncer(postgresPort: number): Promise<{ port: number } & AsyncDisposable> {
  const folder = mkdtempSync(join(tmpdir(), 'pgbouncer-'))
  chmodSync(folder, 0o755)
  const port = await reservePorts()
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(
    file,
    `[databases]
* = host=127.0.0.1 port=${postgresPort} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 1000
default_pool_size = 10
server_login_retry = 1
server_idle_timeout = 5
`,
  )
  const user = process.getuid?.() === 0 ? nobody : {}
  const child = spawn('pgbouncer', ['-q', file], {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...user,
  })
  const ended = once(child, 'exit')
  await untilListening(port, child)
  return {
    port,
    async [Symbol.asyncDispose]() {
      child.kill('SIGINT')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
