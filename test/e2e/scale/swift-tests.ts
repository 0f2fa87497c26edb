import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { startSwift } from './swift.ts'

// The tests of contents in S3 that inject no faults, on OpenStack Swift. Arguments select tests, as for vitest.

await using swift = await startSwift()
const args = ['run', '--config', 'vitest.workspace.ts']
const child = spawn('vitest', [...args, ...process.argv.slice(2)], {
  stdio: 'inherit',
  env: { ...process.env, TEST_S3_STORE: JSON.stringify(swift.env) },
})
const [status] = await once(child, 'exit')
process.exitCode = status ?? 1
