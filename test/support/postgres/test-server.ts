import { existsSync, readFileSync } from 'node:fs'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { ServerProcess } from './server-process.ts'

/** The server that all processes of a test run share: the first that needs it starts it. */
export async function startOrJoinServer(): Promise<{ port: number }> {
  const directory = join(runDirectory(), 'postgres')
  const isFirst = await mkdir(directory).then(
    () => true,
    () => false,
  )
  const portFile = join(directory, 'port')
  if (isFirst) {
    try {
      const { port } = await ServerProcess.create(directory)
      await publish(portFile, String(port))
    } catch (error) {
      await publish(portFile, `failed: ${error}`)
      throw error
    }
  }
  return { port: await readPort(portFile) }
}

/** The one directory of the test run, which ends the server when it is removed. */
function runDirectory(): string {
  const directory = process.env.TEST_RUN_DIRECTORY
  if (directory) return directory
  throw new Error('TEST_RUN_DIRECTORY is not set: run this by vitest.workspace.ts')
}

// Never half a file for those that wait.
async function publish(file: string, text: string) {
  await writeFile(`${file}.new`, text)
  await rename(`${file}.new`, file)
}

async function readPort(file: string): Promise<number> {
  for (;;) {
    const text = await readFile(file, 'utf8').catch(() => undefined)
    if (text?.startsWith('failed')) throw new Error(`The PostgreSQL server of the tests ${text}`)
    if (text) return Number(text)
    await wait(50)
  }
}

/** Ends the server of a test run, synchronously, when the run's process exits. */
export function stopSharedServer(runDirectory: string): void {
  const status = join(runDirectory, 'postgres/data/postmaster.pid')
  if (!existsSync(status)) return
  const pid = Number(readFileSync(status, 'utf8').split('\n')[0])
  if (!(pid > 0)) return // Negative while initdb runs.
  try {
    process.kill(pid, 'SIGQUIT')
  } catch {
    return // It has ended already.
  }
  const pause = new Int32Array(new SharedArrayBuffer(4))
  for (let attempt = 0; attempt < 100 && existsSync(`/proc/${pid}`); attempt += 1) {
    Atomics.wait(pause, 0, 0, 20)
  }
}
