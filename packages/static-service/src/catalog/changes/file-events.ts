import { appendEvents, ofTypes } from '@domains-and-files/events'
import { list, name, type SqlTransaction, sql } from '@domains-and-files/persistence'
import { parentOf } from '../../files/file-path.ts'
import type { Link } from '../../sharing/links.ts'
import { readEntry } from '../history/change-log.ts'
import type { ChangeEntry } from './change-entry.ts'
import type { Done } from './commands.ts'
import type { FileChange } from './loaded-files.ts'

/** Data of an event `files.changed`: the entry of the change, and its directories. */
export interface FilesChanged {
  entry: ChangeEntry
  /** With a trailing slash; the root is empty. At most 100; more are replaced by their ancestors. */
  directories: string[]
  /** Files below these directories were changed, too. */
  isDeep: boolean
}

const maxDirectories = 100

/** Records an event for each change of files, in the transaction of the changes. */
export async function appendFileEvents(transaction: SqlTransaction, changes: FileChange[]) {
  const told = changes.map(({ entry, files }): FilesChanged => {
    const parents = [...new Set(files.map(({ key }) => parentOf(key) ?? ''))]
    const isDeep = parents.length > maxDirectories
    const directories = isDeep ? directoriesAbove(parents) : parents
    return { entry, directories: directories.map(withSlash), isDeep }
  })
  await append(transaction, told)
}

/** The deepest level at which at most 100 directories cover all. */
function directoriesAbove(parents: string[]): string[] {
  let found = ['']
  for (let depth = 1; ; depth += 1) {
    const cut = new Set(parents.map((each) => each.split('/', depth).join('/')))
    if (cut.size > maxDirectories) return found
    found = [...cut]
  }
}

/** Records the event of a change in slices, after its last slice. */
export async function appendSlicedEvent(
  transaction: SqlTransaction,
  { id, directories }: { id: number; directories: (string | null)[] },
) {
  const entry = await readEntry(transaction, id)
  if (!entry) return
  const known = directories.filter((directory) => directory !== null).map(withSlash)
  await append(transaction, [{ entry, directories: known, isDeep: true }])
}

/** Records an event per used-up link, once: skips known ones, as a process may crash before it marks them as recorded. */
export async function appendLinkEvents(
  transaction: SqlTransaction,
  links: Link[],
): Promise<Done<undefined>> {
  const type = 'link.used_up'
  const texts = list(links.map((link) => JSON.stringify(link)))
  const known = await transaction.all<{ data: string }>(
    sql`select data from ${name('events')} where ${ofTypes([type])} and data in (${texts})`,
  )
  const ids = new Set(known.map(({ data }) => (JSON.parse(data) as Link).id)) // As stored below.
  const added = links.filter(({ id }) => !ids.has(id))
  await appendEvents(
    transaction,
    added.map((data) => ({ type, data })),
  )
  return { value: undefined }
}

const append = (transaction: SqlTransaction, told: FilesChanged[]) =>
  appendEvents(
    transaction,
    told.map((data) => ({
      type: 'files.changed',
      by: data.entry.by,
      requestId: data.entry.requestId,
      data,
    })),
  )

const withSlash = (directory: string) => (directory === '' ? '' : `${directory}/`)
