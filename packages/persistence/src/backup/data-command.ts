import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { DataDirError, explainFailure } from '../errors.ts'
import { type BackupJob, type BackupLayout, type BlobSource, backUp, checkAll } from './backup.ts'
import { digestOf, readManifest } from './manifest.ts'
import { Progress } from './progress.ts'
import { restore } from './restore.ts'

const usage = (dataDir: string) => `Keep what is in DATA_DIR (${dataDir}), and bring it back.

  backup <folder> [--verify]    make a backup in a new folder; the service may be running
  restore <folder> [--verify]   bring a backup into DATA_DIR, which must be empty; the service must be stopped
  check <folder> [--verify]     look whether a backup is whole

--verify reads every byte again and compares it with its digest; else sizes are compared.
On the disk of DATA_DIR a backup takes hardly any room or time, and is lost with that disk: copy it to another one.
Exit status: 0 done, 1 not possible or not whole, 2 not understood.
`

/** The commands `backup`, `restore` and `check` of a service; resolves with the exit status. */
export async function runDataCommand(
  layout: BackupLayout,
  args: string[],
  dataDir: string,
): Promise<number> {
  const asked = readArguments(args)
  if (!asked) {
    process.stderr.write(usage(dataDir))
    return 2
  }
  const { command, folder, verify } = asked
  const progress = new Progress(process.stderr)
  const { signal, forget } = listen()
  try {
    const work = { layout, dataDir, folder, verify, signal, progress }
    const told = await commands[command](work)
    progress.end()
    process.stdout.write(`${told}\n`)
    return 0
  } catch (error) {
    progress.end()
    const reason = signal.aborted ? signal.reason : explainFailure(error)
    if (!(reason instanceof DataDirError)) throw error
    process.stderr.write(`${reason.message}\n`)
    return 1
  } finally {
    forget()
  }
}

const commands = {
  async backup(work: BackupJob) {
    return `Backed up into ${work.folder}: ${await tell(work, await backUp(work))}.`
  },
  async restore(work: BackupJob) {
    return `Restored into ${work.dataDir}: ${await tell(work, await restore(work))}.`
  },
  async check(work: BackupJob) {
    const folder = resolve(work.folder)
    const { files, made_at } = await readManifest(folder, work.layout.service)
    for (const { name, sha256 } of files) {
      if ((await digestOf(join(folder, name))) !== sha256)
        throw new DataDirError(`${join(folder, name)} has been altered.`)
    }
    await checkAll(work, folder)
    return `The backup of ${made_at} is whole${also(work)}.`
  },
}

async function tell(work: BackupJob, { count, bytes }: BlobSource): Promise<string> {
  const { files } = await readManifest(resolve(work.folder), work.layout.service)
  const names = files.map(({ name }) => name).join(', ')
  return `${names}, and ${count} contents of ${bytes} bytes${also(work)}`
}

const also = ({ verify }: BackupJob) => (verify ? ', every byte compared with its digest' : '')

function readArguments(args: string[]) {
  try {
    const { values, positionals } = parseArgs({
      args,
      options: { verify: { type: 'boolean', default: false } },
      allowPositionals: true,
    })
    const [command = '', folder, ...more] = positionals
    if (!isCommand(command) || !folder || more.length > 0) return undefined
    return { command, folder, verify: values.verify }
  } catch {
    return undefined
  }
}

const isCommand = (name: string): name is keyof typeof commands => Object.hasOwn(commands, name)

// Who is told to end removes what is not finished, and then does.
function listen() {
  const controller = new AbortController()
  const stop = () => controller.abort(new DataDirError('Broken off: nothing is left of it.'))
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  const forget = () => {
    process.off('SIGINT', stop)
    process.off('SIGTERM', stop)
  }
  return { signal: controller.signal, forget }
}
