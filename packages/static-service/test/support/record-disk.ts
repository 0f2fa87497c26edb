import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
import { watchDisk } from './disk.ts'

// A preload for the service: what it changes on the disk goes to the file DISK_JOURNAL, one line for each call that
// has ended, of all its threads. A kill leaves that file whole; what it would not leave after a loss of power is for
// disk-image.ts to say. SQLite's own calls nothing in this process sees; what `sync` does, record-sync/sync tells.

const file = process.env.DISK_JOURNAL ?? ''
const recorded = ['link', 'mkdir', 'open', 'rename', 'rm', 'sync', 'write']

// An earlier process may have been killed in the middle of a line.
if (isMainThread) {
  const journal = readJournal()
  writeFileSync(file, journal.slice(0, journal.lastIndexOf('\n') + 1))
}

watchDisk({
  begin: () => statSync(file).size,
  end: ({ bytes, ...operation }, since, written) => {
    if (!recorded.includes(operation.name)) return
    const content = bytes && { bytes: bytes.subarray(0, written).toString('base64') }
    appendFileSync(file, `${JSON.stringify({ ...operation, ...content, since })}\n`)
  },
})

function readJournal(): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
