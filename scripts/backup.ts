import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { commandOf } from './build/sources.ts'

// `npm run backup -- <domain|static|all> <folder>`, and `restore`. Runs the command of each service; `all` covers
// everything that `npm start` stores: both services, with the users, the admin's password and the sandbox's state.

const root = join(import.meta.dirname, '..')
const services = ['domain', 'static']

const [command = '', ...args] = process.argv.slice(2)
// Only which arguments are options: the command of the service checks them.
const { tokens } = parseArgs({
  args,
  options: { keep: { type: 'string' } },
  allowPositionals: true,
  strict: false,
  tokens: true,
})
const positionals = tokens.filter(({ kind }) => kind === 'positional').map(({ index }) => index)
const options = args.filter((_, index) => !positionals.includes(index))
const [target = '', folder = '', ...more] = positionals.map((index) => args[index] ?? '')
const program = command === 'check' ? 'scripts/with-node scripts/backup.ts check' : `npm run ${command} --`
const flags = command === 'backup' ? '[--verify] [--keep n] [--skip-damaged]' : '[--verify]'
const usage = `Usage: ${program} <domain|static|all> <folder> ${flags}\n`
if (args.includes('--help') || args.includes('-h')) {
  process.stdout.write(`${usage}\n`)
  process.exit(runService(services.includes(target) ? target : 'static', '', {}))
}
if (!folder || more.length > 0 || ![...services, 'all'].includes(target)) {
  process.stderr.write(usage)
  process.exit(2)
}
process.exit(target === 'all' ? runAll(folder) : runService(target, folder, {}))

function runService(service: string, path: string, env: Record<string, string>): number {
  const script = commandOf(root, `${service}-service`, 'data-command')
  // `npm start` gives each service a folder in its DATA_DIR, and both one users file.
  const dataDir = join(process.env.DATA_DIR || 'data', `${service}-service`)
  const isOfStart = !process.env.DATA_DIR || (command !== 'restore' && existsSync(dataDir))
  const shared = resolve(dataDir, '../users.json')
  const users = isOfStart && !process.env.USERS_FILE && existsSync(shared) ? { USERS_FILE: shared } : {}
  const { status } = spawnSync(process.execPath, [script, command, ...options, path], {
    stdio: 'inherit',
    env: { ...process.env, ...(isOfStart && { DATA_DIR: dataDir }), ...users, ...env },
  })
  return status ?? 1
}

function runAll(path: string): number {
  const dataDir = resolve(root, process.env.DATA_DIR || 'data')
  const [from, to] = command === 'backup' ? [dataDir, path] : [path, dataDir]
  for (const service of services) {
    const status = runService(service, join(path, service), {
      DATA_DIR: join(dataDir, `${service}-service`),
      USERS_FILE: join(dataDir, 'users.json'),
    })
    if (status !== 0) return status
  }
  if (command !== 'backup' && command !== 'restore') return 0
  mkdirSync(to, { recursive: true })
  for (const name of ['admin-password', 'registrar.json']) {
    if (!existsSync(join(from, name))) continue
    // A further backup has the newest ones; a restore overwrites nothing.
    if (command === 'restore' && existsSync(join(to, name))) {
      process.stderr.write(`${join(to, name)} exists: it is not overwritten.\n`)
      return 1
    }
    copyFileSync(join(from, name), join(to, name))
  }
  return 0
}
