import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { CommandLine } from '../../packages/persistence/src/index.ts'

/** Runs a command in this process: one of its own takes long to load its modules. */
export async function runCommand(
  command: (args: string[], line: CommandLine) => Promise<number>,
  args: string[],
  env: NodeJS.ProcessEnv,
) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const status = await command(args, { env, stdout, stderr })
  return { status, out: await text(stdout.end()), errors: await text(stderr.end()) }
}
