import { describeFile, describeZone } from '../harness/described.ts'
import type { Finding } from '../harness/finding.ts'
import { startCold, weigh } from '../harness/process.ts'
import { askCatalog } from './catalog.ts'
import { addHundred, readFresh } from './domains.ts'
import { logInAgain } from './login.ts'
import { readMany } from './many.ts'
import { read, readings } from './static.ts'
import { uploadLarge, uploadSmall } from './uploads.ts'

type Measure = (folder: string) => Promise<Finding[]>

/** Every row by the name that it is called with, in the order of the table. Each gets an empty folder. */
export const rows: Record<string, Measure> = {
  'static-1k': (folder) => read(readings['static-1k'], folder),
  'static-100k': (folder) => read(readings['static-100k'], folder),
  'static-10m': (folder) => read(readings['static-10m'], folder),
  'static-many': readMany,
  'static-304': (folder) => read(readings['static-304'], folder),
  'upload-1g': uploadLarge,
  'upload-4k': uploadSmall,
  file: describeFile,
  catalog: askCatalog,
  'hosts-cached': describeZone,
  'hosts-fresh': readFresh,
  'adds-100': addHundred,
  login: logInAgain,
  memory: weigh,
  start: startCold,
}
