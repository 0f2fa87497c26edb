import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const listOf = (runDirectory = '') => join(runDirectory, 'not-tested')

/** Adds to the last line of the test run, which says what this machine could not test. */
export const reportNotTested = (what: string): void =>
  appendFileSync(listOf(process.env.TEST_RUN_DIRECTORY), `${what}\n`)

/** What was reported, each once; empty: everything was tested. */
export function readNotTested(runDirectory: string): string {
  const list = listOf(runDirectory)
  const reports = existsSync(list) ? readFileSync(list, 'utf8').trim().split('\n') : []
  return [...new Set(reports)].join('; ')
}

/** The directory of data that is not part of this repository, by its environment variable. May be absent. */
export function dataDirectory(variable: 'FILES_DATA' | 'REGISTRAR_DATA'): string {
  const fallback = variable === 'FILES_DATA' ? '../shared/files' : '../shared/registrar'
  const directory = resolve(import.meta.dirname, '../..', process.env[variable] ?? fallback)
  if (!existsSync(directory)) reportNotTested(`the data of ${variable}, absent at ${directory}`)
  return directory
}
