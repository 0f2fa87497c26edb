import { parseArgs } from 'node:util'
import { DataDirError } from '@domains-and-files/persistence'
import { check, NoStore, type Report } from './check.ts'

const usage = `Usage: pnpm files check [--repair]

Reads every stored file of DATA_DIR (data/static-service unless it is set), compares it with its digest, and names each
that is damaged; ends with status 1 if there are any. --repair drops what no file refers to; the service must be stopped.
`

process.exitCode = await run(process.argv.slice(2))

async function run(args: string[]): Promise<number> {
  const asked = readArguments(args)
  if (!asked) {
    process.stderr.write(usage)
    return 2
  }
  const dataDir = process.env.DATA_DIR || 'data/static-service'
  try {
    const report = await check({ dataDir, repair: asked.repair, onProgress: showProgress })
    hideProgress()
    process.stdout.write(describe(report, asked.repair))
    return report.damages.length > 0 ? 1 : 0
  } catch (error) {
    if (!(error instanceof NoStore || error instanceof DataDirError)) throw error
    process.stderr.write(`${error.message}\n`)
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
    ...orphans.map((name) => `${isRepaired ? 'dropped' : 'orphan'}: ${name}`),
    `${files} files, ${contents} contents, ${bytes} bytes: ${summarize(damages.length)}`,
  ]
  if (orphans.length > 0 && !isRepaired) {
    lines.push(`${orphans.length} orphans take up space and harm nothing: --repair drops them`)
  }
  return `${lines.join('\n')}\n`
}

function summarize(damages: number) {
  return damages === 0 ? 'all whole' : `${damages} damaged`
}

function showProgress({ contents, bytes, of }: { contents: number; bytes: number; of: number }) {
  if (!process.stderr.isTTY) return
  const megabytes = Math.round(bytes / 1_000_000)
  process.stderr.write(`\r\x1b[Kchecked ${contents} of ${of} contents, ${megabytes} MB`)
}

function hideProgress() {
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
}
