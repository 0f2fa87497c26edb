// `npm run test:power`: cuts the power of real file systems on loop devices while writers are at work, and looks for
// losses after the next start. POWER_CUTS is the number of rounds for each file system.

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { check } from '../../src/maintenance/files-command.ts'
import { type FileSystem, type MountedDisk, mountDisk, whyNoDisk } from '../support/mounted-disk.ts'
import { run } from '../support/program.ts'
import { findLostBytes, type ResumedUpload, resumeUntilGone } from '../support/resumed-upload.ts'
import { countInterrupted, findLosses, makeWriters, settle, type Writer, writeUntilKilled } from '../support/writers.ts'

const rounds = Number(process.env.POWER_CUTS ?? 10)
const kinds: FileSystem[] = ['xfs', 'ext4']

const reason = whyNoDisk() ?? installTools()
if (reason) {
  process.stdout.write(`NOT RUN: power cuts on ${kinds.join(' and ')}: ${reason}\n`)
  process.exitCode = 2
} else {
  for (const kind of kinds) {
    const { acknowledged, resumed, interrupted, losses } = await cutRepeatedly(kind)
    const found = losses.length === 0 ? 'nothing lost' : `LOST: ${losses.join(', ')}`
    process.stdout.write(
      `${kind}: ${rounds} cuts, ${acknowledged} acknowledged changes: ${found}\n` +
        `  resumable uploads cut after ${resumed.join(', ')} acknowledged bytes\n` +
        `  cut off: ${JSON.stringify(interrupted)}\n`,
    )
    if (losses.length > 0) process.exitCode = 1
  }
}

function installTools(): string | undefined {
  const isThere = kinds.every((kind) => existsSync(`/usr/sbin/mkfs.${kind}`))
  if (isThere) return undefined
  try {
    execFileSync('apt-get', ['install', '-y', '-qq', 'xfsprogs', 'e2fsprogs'], { stdio: 'ignore' })
    return undefined
  } catch {
    return 'xfsprogs and e2fsprogs cannot be installed'
  }
}

async function cutRepeatedly(kind: FileSystem) {
  using disk = mountDisk(kind)
  const outside = mkdtempSync(join(tmpdir(), 'static-power-cut-'))
  const dataDir = join(disk.folder, 'data')
  const writers = makeWriters(6)
  const losses: string[] = []
  const resumed: number[] = []
  let acknowledged = 0
  try {
    if (!losesUnflushed(disk)) losses.push('the cut itself: it takes nothing, so it proves nothing')
    for (let round = 0; round < rounds; round += 1) {
      const backup = join(outside, `backup-${round}`)
      const cut = await writeUntilCut({ disk, dataDir, backup }, writers)
      const { count, upload, isBackedUp } = cut
      acknowledged += count
      resumed.push(upload.acknowledged)
      losses.push(...(await findAllLosses(dataDir, writers, upload)))
      if (isBackedUp) losses.push(...(await findBackupLosses(backup, outside)))
    }
  } finally {
    rmSync(outside, { recursive: true })
  }
  return { acknowledged, resumed, interrupted: countInterrupted(writers), losses }
}

// The harness must be able to see a loss: a file that was never flushed is empty, or gone.
function losesUnflushed(disk: MountedDisk): boolean {
  const file = join(disk.folder, 'unflushed')
  writeFileSync(file, 'x'.repeat(100_000))
  disk.cutPower()
  disk.remount()
  return !existsSync(file) || statSync(file).size === 0
}

interface Cutting {
  disk: MountedDisk
  dataDir: string
  backup: string
}

async function writeUntilCut({ disk, dataDir, backup }: Cutting, writers: Writer[]) {
  const program = await run(dataDir)
  const token = await program.logIn()
  for (const writer of writers) await settle(program, writer)
  const backingUp = runData('backup', backup, dataDir)
  const cut = () => {
    // Not an answer more: what a dead disk acknowledges is no promise.
    program.child.kill('SIGSTOP')
    disk.cutPower()
    program.child.kill('SIGKILL')
  }
  const resuming = resumeUntilGone(program, token)
  const count = await writeUntilKilled(program, { token, writers }, { kill: cut, withinMs: 2500 }).finally(() =>
    program.kill(),
  )
  const { status } = await backingUp
  disk.remount()
  return { count, upload: await resuming, isBackedUp: status === 0 }
}

async function findAllLosses(dataDir: string, writers: Writer[], upload: ResumedUpload): Promise<string[]> {
  const program = await run(dataDir)
  const token = await program.logIn()
  const losses = await findLostBytes(program, token, upload)
  for (const writer of writers) losses.push(...(await findLosses(program, token, writer)))
  for (const writer of writers) await settle(program, writer)
  program.child.kill('SIGTERM') // Ends once the sweep of the start has ended.
  await once(program.child, 'exit')
  const { damages, orphans } = await check({ DATA_DIR: dataDir })
  return [...losses, ...damages.map(({ path }) => path), ...orphans, ...readdirSync(join(dataDir, 'tmp'))]
}

async function findBackupLosses(backup: string, outside: string): Promise<string[]> {
  const copy = join(outside, 'restored')
  try {
    const restored = await runData('restore', backup, copy)
    if (restored.status !== 0) return [`the backup: ${restored.output}`]
    return (await check({ DATA_DIR: copy })).damages.map(({ path }) => `${path} of the backup`)
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

async function runData(command: string, folder: string, dataDir: string) {
  const script = join(import.meta.dirname, '../../src/maintenance/data-command.ts')
  const child = spawn(process.execPath, [script, command, folder, '--verify'], {
    env: { PATH: process.env.PATH, DATA_DIR: dataDir },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const output = text(child.stderr)
  const [status] = await once(child, 'exit')
  return { status, output: await output }
}
