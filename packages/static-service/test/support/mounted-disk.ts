import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type FileSystem = 'xfs' | 'ext4'

/** A file system on a loop device, whose power can be cut. */
export interface MountedDisk extends Disposable {
  /** Where it is mounted. */
  folder: string
  /** Stops all writing to the device at once: neither page cache nor journal is flushed. */
  cutPower: () => void
  /** Mounts it again, which replays its journal. No file may be open. */
  remount: () => void
}

/** Why no such disk can be used here; undefined if it can. */
export function whyNoDisk(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root may mount file systems'
  const { status, error } = spawnSync('losetup', ['--find'], { stdio: 'ignore' })
  if (error) return `losetup cannot be run: ${error.message}`
  return status === 0 ? undefined : 'there is no free loop device'
}

export function mountDisk(kind: FileSystem): MountedDisk {
  const outside = mkdtempSync(join(tmpdir(), `static-${kind}-`))
  const image = join(outside, 'image')
  const folder = join(outside, 'disk')
  writeFileSync(image, '')
  truncateSync(image, 4096 * 1_048_576) // Sparse; each power cut adds some ten files of 12 MB
  mkdirSync(folder)
  const mount = () => run('mount', '-o', 'loop', image, folder)
  run(`mkfs.${kind}`, '-q', kind === 'xfs' ? '-f' : '-F', image)
  mount()
  return {
    folder,
    // XFS_IOC_GOINGDOWN and EXT4_IOC_SHUTDOWN are one number; 2 is "without flushing the log".
    cutPower: () => run('perl', '-e', cut, folder),
    remount: () => {
      run('umount', folder)
      mount()
    },
    [Symbol.dispose]: () => {
      run('umount', '--lazy', folder)
      rmSync(outside, { recursive: true })
    },
  }
}

const cut = '$flags = pack("L", 2); open(F, "<", $ARGV[0]) or die $!; ioctl(F, 0x8004587d, $flags) or die $!'

function run(command: string, ...args: string[]) {
  execFileSync(command, args, { stdio: 'pipe' })
}
