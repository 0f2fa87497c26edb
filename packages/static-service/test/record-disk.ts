import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
import { interceptDisk } from './disk.ts'

// A preload for the service: what it changes on the disk goes to the file DISK_JOURNAL, one line for each call that
// has ended. A kill leaves that file whole; what it would not leave after a loss of power is for disk-image.ts to say.

const file = process.env.DISK_JOURNAL ?? ''
const recorded = ['link', 'mkdir', 'open', 'rename', 'rm', 'sync', 'write']

// The service's threads have SQLite only, whose own calls nothing in this process sees.
if (isMainThread) record()

function record() {
  // An earlier process may have been killed in the middle of a line.
  const lines = readJournal().split('\n').slice(0, -1)
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''))
  let count = lines.length
  interceptDisk(async ({ bytes, ...operation }, run) => {
    const since = count
    const result = await run()
    if (!recorded.includes(operation.name)) return result
    const content = bytes && { bytes: bytes.subarray(0, writtenOf(result)).toString('base64') }
    appendFileSync(file, `${JSON.stringify({ ...operation, ...content, since })}\n`)
    count += 1
    return result
  })
}

function readJournal(): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

const writtenOf = (result: unknown) => Number(Object(result).bytesWritten)
