import { randomUUID } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { giveToOwner } from './durable-files.ts'

/**
 * Replaces a small private file (0600) atomically and durably; it keeps its owner. A symbolic link, such as a mounted
 * secret, stays and its target is replaced. Blocks the event loop for the fsync.
 */
export function writeFileAtomic(path: string, text: string): void {
  const file = existsSync(path) ? realpathSync(path) : path
  const temporary = `${file}.${randomUUID()}.tmp`
  try {
    const fd = openSync(temporary, 'wx', 0o600)
    try {
      writeFileSync(fd, text)
      giveToOwner(temporary, existsSync(file) ? file : undefined)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(temporary, file)
  } finally {
    rmSync(temporary, { force: true })
  }
  fsyncDirectorySync(dirname(file))
}

function fsyncDirectorySync(directory: string) {
  const fd = openSync(directory, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
