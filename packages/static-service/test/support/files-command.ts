import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { runCommand } from '../../../../test/support/run-command.ts'
import { manageFiles } from '../../src/maintenance/files-command.ts'

const file = join(import.meta.dirname, '../../dist/files-command.js')

/** `npm run files` in this process. */
export async function runCli(dataDir: string, ...args: string[]) {
  const { status, out, errors } = await runCommand(manageFiles, args, { DATA_DIR: dataDir })
  return { status, lines: out.trimEnd().split('\n'), stderr: errors }
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
