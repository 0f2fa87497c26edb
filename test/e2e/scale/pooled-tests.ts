import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startOrJoinServer, stopSharedServer } from '../../support/postgres/test-server.ts'
import { startPgBouncer } from './pgbouncer.ts'

// The tests that use PostgreSQL, through PgBouncer in transaction mode. Arguments select tests, as for vitest.

const directory = mkdtempSync(join(tmpdir(), 'test-run-'))
process.env.TEST_RUN_DIRECTORY = directory
const temporary = join(directory, 'tmp')
mkdirSync(temporary)
process.on('exit', () => {
  stopSharedServer(directory)
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
})

const { port } = await startOrJoinServer()
await using pooler = await startPgBouncer(port)
const args = ['run', '--config', 'vitest.workspace.ts', '--reporter', 'dot']
const child = spawn('vitest', [...args, ...process.argv.slice(2)], {
  stdio: 'inherit',
  env: { ...process.env, TMPDIR: temporary, TEST_DATABASE_POOLER: String(pooler.port) },
})
const [status] = await once(child, 'exit')
process.exitCode = status ?? 1
