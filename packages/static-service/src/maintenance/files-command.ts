import { parseArgs } from 'node:util'
import {
  type CommandLine,
  DataDirError,
  explainDatabaseFailure,
  Progress,
} from '@domains-and-files/persistence'
import { check, type Report } from './check.ts'

const usage = `Usage: npm run files -- check [--repair]

Compares every stored content of DATA_DIR (default: data/static-service; also the DATA_DIR of npm start), or of
DATABASE_URL and S3_BUCKET, with its digest, goes on past what cannot be read, and names each damaged file with the
reason. Exit status 1 if there are any.
--repair removes what no file refers to; a service that uses DATA_DIR must be stopped.
`

/** Runs the command with these arguments, and returns its exit status. */
export async function manageFiles(
  args: string[],
  { env, stdout, stderr }: CommandLine,
): Promise<number> {
  const options = readArguments(args)
  if (!options) {
    stderr.write(usage)
    return 2
  }
  const progress = new Progress(stderr)
  try {
    const report = await check(env, { ...options, progress })
    progress.end()
    stdout.write(describe(report, options.repair))
    return report.damages.length > 0 ? 1 : 0
  } catch (error) {
    progress.end()
    const reason = explainDatabaseFailure(error)
    if (!(reason instanceof DataDirError)) throw error
    stderr.write(`${reason.message}\n`)
    return 1
  }
}

function readArguments(args: string[]): { repair: boolean } | undefined {
  try {
    const { values, positionals } = parseArgs({
      args,
      options: { repair: { type: 'boolean', default: false } },
      allowPositionals: true,
    })
    return positionals.join(' ') === 'check' ? values : undefined
  } catch {
    return undefined
  }
}

function describe({ files, contents, bytes, damages, orphans }: Report, isRepaired: boolean) {
  const lines = [
    ...damages.map(({ path, fault }) => `damaged: ${path}: ${fault}`),
    ...orphans.map((name) => `${isRepaired ? 'removed' : 'orphan'}: ${name}`),
    `${files} files, ${contents} contents, ${bytes} bytes: ${damages.length > 0 ? `${damages.length} damaged` : 'all sound'}`,
  ]
  if (orphans.length > 0 && !isRepaired) {
    lines.push(`${orphans.length} orphans only take up space: --repair removes them`)
  }
  return `${lines.join('\n')}\n`
}

if (import.meta.main) process.exitCode = await manageFiles(process.argv.slice(2), process)
