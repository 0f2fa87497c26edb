import { relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { refuseUnfinished } from '../data-dir-lock.ts'
import { DataDirError } from '../errors.ts'
import { type CommandLine, isDiskFull, runMaintenance } from '../maintenance-command.ts'
import { type ArchivedService, openSource } from './archived-service.ts'
import { type BackupResult, backUp, verifySnapshot } from './backup.ts'
import { Repository } from './repository.ts'
import { type RestoreJob, restore } from './restore.ts'

const usage = (
  dataDir: string,
) => `Back up DATA_DIR (${dataDir}), and restore it. With DATABASE_URL: the database instead.

  backup <folder>    add a backup to a folder of backups, which is created; the service may be running
  restore <folder>   restore the newest backup of a folder, or the one in <folder>/snapshots/<time>, into DATA_DIR or
                     DATABASE_URL, which must be empty; the service must be stopped
  check <folder>     check that the newest backup, or the one named, is complete

  --verify           read every byte and compare it with its digest; else only sizes are compared
  --keep <number>    after a backup, remove all but this number of newest ones, and the contents that none of these needs
  --skip-damaged     go on past damaged contents, and name their files; a backup without any sound content fails

An interrupted backup or restore is continued by the same command. A backup copies only the contents that the folder lacks.
Exit status: 0 done, 1 not possible or damaged, 2 invalid arguments.
`

interface Context extends Omit<RestoreJob, 'repository' | 'snapshot'> {
  folder: string
  keep: number | undefined
}

/** The commands `backup`, `restore` and `check` of a service; resolves with the exit status. */
export async function runDataCommand(service: ArchivedService, args: string[], line: CommandLine): Promise<number> {
  const { env } = line
  const dataDir = env.DATA_DIR || `data/${service.name}`
  const places = { dataDir, usersFile: env.USERS_FILE || undefined }
  const database = env.DATABASE_URL || env.DATABASE_URL_FILE ? env : undefined
  return runMaintenance(line, { usage: usage(dataDir), args, read: readArguments }, async (options, progress) => {
    const { signal, ignore } = abortOnSignal()
    try {
      const context = { service, places, database, signal, progress, ...options }
      return { summary: await commands[options.command](context) }
    } catch (error) {
      throw signal.aborted ? signal.reason : error
    } finally {
      ignore()
    }
  })
}

const commands = { backup: runBackup, restore: runRestore, check: runCheck }

async function runBackup(context: Context): Promise<string> {
  const { service, places, database, verify, keep, skipDamaged, signal, progress } = context
  const folder = resolve(context.folder)
  // A start empties them.
  if (/^(?:blobs|tmp|uploads)(?:\/|$)/.test(relative(resolve(places.dataDir), folder)))
    throw new DataDirError(`${folder} is the service's own: choose another folder.`)
  if (!database) refuseUnfinished(places.dataDir)
  await using source = await openSource(service, places, database)
  using repository = await Repository.openWriter(folder, service.name)
  try {
    const job = { repository, source, verify, skipDamaged, signal, progress }
    const result = await backUp({ service: service.name, ...job })
    if (verify) await result.snapshot.setVerified()
    if (keep !== undefined) await repository.keepNewest(keep)
    return await describe(context, `Backed up into ${result.snapshot.folder}`, result)
  } catch (error) {
    // Keep the copied blobs for the next backup, except on a full disk, where the service may need the space.
    await (isDiskFull(error) ? repository.discard() : repository.removePartials())
    throw error
  }
}

async function runRestore(context: Context): Promise<string> {
  const { database, places } = context
  using repository = Repository.openReader(resolve(context.folder))
  const snapshot = await repository.snapshot(context.service.name)
  const result = await restore({ ...context, repository, snapshot })
  return describe(context, `Restored into ${database ? 'DATABASE_URL' : places.dataDir}`, result)
}

async function runCheck(context: Context): Promise<string> {
  using repository = Repository.openReader(resolve(context.folder))
  const snapshot = await repository.snapshot(context.service.name)
  const damages = await verifySnapshot({ ...context, repository, snapshot })
  await damages.refuse(snapshot)
  if (context.verify) await snapshot.setVerified()
  const known = await damages.describe('contents were damaged when it was made', snapshot)
  const { made_at } = snapshot.manifest
  return [`The backup of ${made_at} is complete${verified(context)}.`, known].filter(Boolean).join('\n')
}

async function describe(context: Context, what: string, { snapshot, damages }: BackupResult) {
  const { files, blobs } = snapshot.manifest
  const names = files.map(({ name }) => `${name}, `).join('')
  const summary = `${what}: ${names}and ${blobs.count} contents of ${blobs.bytes} bytes${verified(context)}.`
  return [summary, await damages.describe('of them left out, since damaged', snapshot)].filter(Boolean).join('\n')
}

const verified = ({ verify }: Context) => (verify ? ', every byte compared with its digest' : '')

function readArguments(args: string[]) {
  const { values, positionals } = parseArgs({
    args,
    options: {
      verify: { type: 'boolean', default: false },
      keep: { type: 'string' },
      'skip-damaged': { type: 'boolean', default: false },
    },
    allowPositionals: true,
  })
  const [command = '', folder, ...more] = positionals
  const { verify, keep, 'skip-damaged': skipDamaged } = values
  if (!/^[1-9]\d*$/.test(keep ?? '1')) throw new Error('--keep takes a number from 1.')
  if (!isCommand(command) || !folder || more.length > 0) return undefined
  return { command, folder, verify, skipDamaged, keep: keep === undefined ? keep : Number(keep) }
}

const isCommand = (name: string): name is keyof typeof commands => Object.hasOwn(commands, name)

function abortOnSignal() {
  const controller = new AbortController()
  const stop = () => controller.abort(new DataDirError('Interrupted: run the same command again to continue.'))
  process.on('SIGINT', stop).on('SIGTERM', stop)
  return { signal: controller.signal, ignore: () => process.off('SIGINT', stop).off('SIGTERM', stop) }
}
