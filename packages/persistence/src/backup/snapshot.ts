import { open } from 'node:fs/promises'
import { backup, DatabaseSync } from 'node:sqlite'

/**
 * Copies a database as it is at one moment, while its service goes on writing. The copy is one file, flushed.
 * `onPages` is told how much is done, from 0 to 1.
 */
export async function copyDatabase(from: string, to: string, onPages: (done: number) => void) {
  const source = new DatabaseSync(from, { readOnly: true, timeout: 5000 })
  try {
    // One transaction for the whole copy: else it begins anew with each commit of the service, and may never end.
    source.exec('begin')
    source.prepare('select count(*) from sqlite_schema').get()
    await backup(source, to, {
      rate: 1000,
      progress: ({ totalPages, remainingPages }) => onPages(1 - remainingPages / totalPages),
    })
  } finally {
    source.close()
  }
  foldLog(to)
  await using handle = await open(to, 'r+')
  await handle.chmod(0o600)
  await handle.sync()
}

// A copy is read where nothing may be written, so it must not need the files of a log beside it.
function foldLog(file: string) {
  const copy = new DatabaseSync(file)
  try {
    copy.exec('pragma journal_mode = delete')
  } finally {
    copy.close()
  }
}
