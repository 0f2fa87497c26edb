import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, test } from 'vitest'

test('a worker of a test run that is killed ends at once', async () => {
  const setup = join(import.meta.dirname, '../support/exit-with-run.ts')
  const program = 'setInterval(() => {}, 1000); process.send("ready")'
  const worker = spawn(process.execPath, ['--import', setup, '--eval', program], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  await once(worker, 'message')

  worker.disconnect() // The kernel does so for a killed process.

  expect(await once(worker, 'exit')).toEqual([null, 'SIGKILL'])
})
