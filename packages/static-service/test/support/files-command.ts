import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { manageFiles } from '../../src/maintenance/files-command.ts'

const file = join(import.meta.dirname, '../../src/maintenance/files-command.ts')

/** `npm run files` in this process: one of its own takes long to load its modules. */
export async function runCli(dataDir: string, ...args: string[]) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const status = await manageFiles(args, { env: { DATA_DIR: dataDir }, stdout, stderr })
  const lines = (await text(stdout.end())).trimEnd().split('\n')
  return { status, lines, stderr: await text(stderr.end()) }
}

/** `npm run files` as a user runs it. */
export function spawnCli(dataDir: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, ...args], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      DATA_DIR: dataDir,
    },
    encoding: 'utf8',
  })
  return { status, lines: stdout.trimEnd().split('\n'), stderr }
}
