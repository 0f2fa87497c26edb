import { appendFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename } from 'node:path'

// A preload for the service: appends the name of the database and its `synchronous` to the file COMMIT_JOURNAL at each commit,
// of each thread. With FULL, 2, SQLite flushes the log before the commit ends; with NORMAL, 1, it does not.

const { prototype } = createRequire(import.meta.url)('better-sqlite3')
const { prepare } = prototype

prototype.prepare = function prepareRecorded(text: string) {
  const statement = prepare.call(this, text)
  if (text !== 'commit') return statement
  const run = statement.run.bind(statement)
  statement.run = () => {
    const mode = this.pragma('synchronous', { simple: true })
    const result = run()
    appendFileSync(process.env.COMMIT_JOURNAL ?? '', `${basename(this.name)} ${mode}\n`)
    return result
  }
  return statement
}
