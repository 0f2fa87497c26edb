import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { commandOf } from './build/sources.ts'

// `npm run drill -- <domain|static> <folder>`: a recovery drill of the embedded form beside the running service. It adds a
// backup to the folder, checks every byte of it, restores it elsewhere, checks what was restored, and compares its rows and
// contents with the backup. It prints a report; the exit status is 1 where a step failed.

const usage = 'Usage: npm run drill -- <domain|static> <folder of backups>\n'
const [service = '', folder = '', ...more] = process.argv.slice(2)
if (process.argv.includes('--help') || process.argv.includes('-h')) {
  process.stdout.write(
    `${usage}Adds a backup to the folder, restores it elsewhere, and compares what was restored with the backup.\n`,
  )
  process.exit(0)
}
if (!['domain', 'static'].includes(service) || !/^[^-]/.test(folder) || more.length > 0) {
  process.stderr.write(usage)
  process.exit(2)
}
if (process.env.DATABASE_URL || process.env.DATABASE_URL_FILE) {
  process.stderr.write('With DATABASE_URL restore into an empty database: see docs/operations.md.\n')
  process.exit(2)
}

const backupCommand = join(import.meta.dirname, 'backup.ts')
const filesCommand = commandOf(join(import.meta.dirname, '..'), 'static-service', 'files-command')
const scratch = mkdtempSync(join(tmpdir(), 'drill-'))
const restored = join(scratch, 'restored')
const again = join(scratch, 'backups')
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))

const elsewhere = { DATA_DIR: restored, USERS_FILE: '' }
run('back up', [backupCommand, 'backup', service, folder, '--verify'])
run('check the backup', [backupCommand, 'check', service, folder, '--verify'])
run('restore', [backupCommand, 'restore', service, folder, '--verify'], elsewhere)
if (service === 'static') run('check the files', [filesCommand, 'check'], elsewhere)
run('back up what was restored', [backupCommand, 'backup', service, again], elsewhere)
const differing = compare(newestManifest(folder), newestManifest(again))
report('compare', differing.length === 0, differing.join(', ') || 'as many rows, and the same contents')

function run(step: string, args: string[], env: Record<string, string> = {}) {
  const begun = performance.now()
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  })
  const took = `${((performance.now() - begun) / 1000).toFixed(1)} s`
  report(step, status === 0, status === 0 ? took : `${took}\n${stdout}${stderr}`)
}

function report(step: string, isRight: boolean, detail: string) {
  process.stdout.write(`${isRight ? 'ok    ' : 'FAILED'} ${step}: ${detail}\n`)
  if (!isRight) process.exit(1)
}

interface Manifest {
  tables: { name: string; rows: number }[]
  files: { name: string; sha256: string }[]
  blobs: { count: number; bytes: number }
}

function newestManifest(repository: string): Manifest {
  const snapshots = join(resolve(repository), 'snapshots')
  const newest = readdirSync(snapshots).toSorted().at(-1) ?? ''
  return JSON.parse(readFileSync(join(snapshots, newest, 'manifest.json'), 'utf8'))
}

/** Names of the parts that are not the same in both. Rows are counted: a restore holds queued changes for an admin. */
function compare(one: Manifest, other: Manifest): string[] {
  const parts = ({ tables, files, blobs }: Manifest) =>
    new Map<string, number | string>([
      ...tables.map(({ name, rows }) => [name, rows] as const),
      ...files.map(({ name, sha256 }) => [name, sha256] as const),
      ['contents', JSON.stringify(blobs)],
    ])
  const [left, right] = [parts(one), parts(other)]
  const names = new Set([...left.keys(), ...right.keys()])
  return [...names].filter((name) => left.get(name) !== right.get(name))
}
