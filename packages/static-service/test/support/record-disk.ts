import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
import { watchDisk } from './disk.ts'

// A preload for the service: appends each completed call that changes the disk to the file DISK_JOURNAL, one line per
// call. A kill leaves that file complete; disk-image.ts computes what a power loss would leave. Calls of SQLite itself
// are not visible here: its files are taken as SQLite left them.

const file = process.env.DISK_JOURNAL ?? ''
const recorded = ['link', 'mkdir', 'open', 'rename', 'rm', 'sync', 'write']

if (isMainThread) {
  // An earlier process may have been killed in the middle of a line.
  const journal = readJournal()
  writeFileSync(file, journal.slice(0, journal.lastIndexOf('\n') + 1))

  watchDisk({
    begin: () => statSync(file).size,
    end: ({ bytes, ...operation }, since, written) => {
      if (!recorded.includes(operation.name)) return
      const content = bytes && { bytes: bytes.subarray(0, written).toString('base64') }
      appendFileSync(file, `${JSON.stringify({ ...operation, ...content, since })}\n`)
    },
  })
}

function readJournal(): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
