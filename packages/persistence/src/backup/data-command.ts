import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { DataDirError } from '../errors.ts'
import { explainFailure } from '../explain-failure.ts'
import { backUp, checkAll, pathsIn } from './backup.ts'
import type { BackupJob, BackupLayout, BackupResult } from './backup-job.ts'
import { DamageList } from './damage.ts'
import { digestOf, readManifest } from './manifest.ts'
import type { DatabaseStore } from './postgres/database-store.ts'
import { restoreIntoDatabase } from './postgres/restore-database.ts'
import { Progress } from './progress.ts'
import { restore } from './restore.ts'

const usage = (
  dataDir: string,
) => `Back up DATA_DIR (${dataDir}), and restore it. With DATABASE_URL: the database instead.

  backup <folder>    make a backup in a new folder; the service may be running
  restore <folder>   restore a backup into DATA_DIR, which must be empty; the service must be stopped. An interrupted
                     restore into DATABASE_URL is resumed by the same command
  check <folder>     check that a backup is complete

  --verify           read every byte and compare it with its digest; else only sizes are compared
  --skip-damaged     go on past damaged contents, and name their files

A backup copies only the contents that the newest backup in the same parent folder lacks. On the disk of DATA_DIR it
links content files instead of copying them, but is lost with that disk: copy it to another one.
Exit status: 0 done, 1 not possible or damaged, 2 invalid arguments.
`

export interface DataPlaces {
  dataDir: string
  usersFile: string | undefined
  /** Opens what is stored in PostgreSQL instead of the data directory. */
  openStore?: (() => Promise<DatabaseStore>) | undefined
}

/** The commands `backup`, `restore` and `check` of a service; resolves with the exit status. */
export async function runDataCommand(
  layout: BackupLayout,
  args: string[],
  { dataDir, usersFile, openStore }: DataPlaces,
): Promise<number> {
  const options = readArguments(args)
  if (!options) {
    process.stderr.write(usage(dataDir))
    return 2
  }
  const progress = new Progress(process.stderr)
  const isResumable = options.command === 'restore' && openStore !== undefined
  const { signal, ignore } = abortOnSignal(
    isResumable ? 'run the same command again to resume' : 'nothing was left behind',
  )
  try {
    const store = options.command === 'check' ? undefined : await openStore?.()
    const job = { layout, dataDir, usersFile, store, signal, progress, ...options }
    const summary = await commands[options.command](job).finally(() => close(store))
    progress.end()
    process.stdout.write(`${summary}\n`)
    return 0
  } catch (error) {
    progress.end()
    const reason = signal.aborted ? signal.reason : explainFailure(error)
    if (!(reason instanceof DataDirError)) throw error
    process.stderr.write(`${reason.message}\n`)
    return 1
  } finally {
    ignore()
  }
}

const close = async (store: DatabaseStore | undefined) =>
  store?.close ? store.close() : store?.database.close()

const commands = {
  async backup(job: BackupJob) {
    return describe(job, `Backed up into ${job.folder}`, await backUp(job))
  },
  async restore(job: BackupJob) {
    const { store } = job
    if (store)
      return describe(job, 'Restored into DATABASE_URL', await restoreIntoDatabase(job, store))
    return describe(job, `Restored into ${job.dataDir}`, await restore(job))
  },
  check: checkBackup,
}

async function checkBackup(job: BackupJob): Promise<string> {
  const folder = resolve(job.folder)
  const { files, segments, made_at, damaged } = await readManifest(folder, job.layout.service)
  for (const { name, sha256 } of [...files, ...(job.verify ? segments : [])]) {
    if ((await digestOf(join(folder, name))) !== sha256)
      throw new DataDirError(`${join(folder, name)} has been altered.`)
  }
  const damages = new DamageList()
  await checkAll({ ...job, segments: segments.map(({ name }) => name), damages }, folder)
  const pathsOf = pathsIn(job.layout, join(folder, job.layout.database))
  if (damages.digests.some((digest) => !damaged.includes(digest))) damages.refuse(pathsOf)
  damages.addKnown(damaged)
  const known = damages.describe('contents were damaged when it was made', pathsOf)
  return [`The backup of ${made_at} is complete${verified(job)}.`, known].filter(Boolean).join('\n')
}

async function describe(job: BackupJob, what: string, { count, bytes, damages }: BackupResult) {
  const folder = resolve(job.folder)
  const { files } = await readManifest(folder, job.layout.service)
  const names = files.map(({ name }) => name).join(', ')
  const pathsOf = pathsIn(job.layout, join(folder, job.layout.database))
  const summary = `${what}: ${names}, and ${count} contents of ${bytes} bytes${verified(job)}.`
  return [summary, damages.describe('damaged contents', pathsOf)].filter(Boolean).join('\n')
}

const verified = ({ verify }: BackupJob) => (verify ? ', every byte compared with its digest' : '')

function readArguments(args: string[]) {
  try {
    const { values, positionals } = parseArgs({
      args,
      options: {
        verify: { type: 'boolean', default: false },
        'skip-damaged': { type: 'boolean', default: false },
      },
      allowPositionals: true,
    })
    const [command = '', folder, ...more] = positionals
    if (!isCommand(command) || !folder || more.length > 0) return undefined
    return { command, folder, verify: values.verify, skipDamaged: values['skip-damaged'] }
  } catch {
    return undefined
  }
}

const isCommand = (name: string): name is keyof typeof commands => Object.hasOwn(commands, name)

// An interrupted command removes what it has written, or leaves what can be resumed, and then ends.
function abortOnSignal(consequence: string) {
  const controller = new AbortController()
  const stop = () => controller.abort(new DataDirError(`Interrupted: ${consequence}.`))
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  const ignore = () => {
    process.off('SIGINT', stop)
    process.off('SIGTERM', stop)
  }
  return { signal: controller.signal, ignore }
}
