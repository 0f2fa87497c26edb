import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { reportNotTested } from '../../../../test/support/not-tested.ts'

export interface SmallDisk extends Disposable {
  folder: string
  /** Fills it to the last byte with a file of somebody else's. */
  fill: () => void
  /** Removes that file. */
  relieve: () => void
  /** Makes it read-only, as a disk becomes that has failed. No file may be open to be written. */
  forbidWrites: () => void
}

/** A disk of a few megabytes, and for so many files, or undefined where this process may not mount one. */
export function mountSmallDisk(megabytes: number, inodes?: number): SmallDisk | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'static-small-disk-'))
  try {
    const limits = `size=${megabytes}m${inodes === undefined ? '' : `,nr_inodes=${inodes}`}`
    execFileSync('mount', ['-t', 'tmpfs', '-o', limits, 'tmpfs', folder], { stdio: 'pipe' })
  } catch {
    rmSync(folder, { recursive: true })
    reportNotTested('a full disk, since none can be mounted here')
    return undefined
  }
  const ballast = join(folder, 'ballast')
  return {
    folder,
    fill: () => {
      for (const size of [1_048_576, 4096, 1]) fillBy(ballast, Buffer.alloc(size))
    },
    relieve: () => rmSync(ballast),
    forbidWrites: () => {
      execFileSync('mount', ['-o', 'remount,ro', folder], { stdio: 'pipe' })
    },
    [Symbol.dispose]: () => {
      execFileSync('umount', ['--lazy', folder])
      rmSync(folder, { recursive: true })
    },
  }
}

function fillBy(file: string, chunk: Buffer) {
  try {
    for (;;) appendFileSync(file, chunk)
  } catch {
    // Full.
  }
}
