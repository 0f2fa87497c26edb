import type { Finding } from '../harness/finding.ts'
import { measureCatalog } from './catalog.ts'
import { addHundred, readFresh } from './domains.ts'
import { keepHistory, listWithPast, replaceTrees } from './history.ts'
import { measureLogin } from './login.ts'
import { readMany } from './many.ts'
import { readCachedZone, readFileRecord } from './records.ts'
import { addOverReplicas, readTwoReplicas } from './replicas.ts'
import { measureMemory, measureStart } from './resources.ts'
import { measureSharedCatalog } from './shared-catalog.ts'
import { readShared } from './shared-reads.ts'
import { uploadLargeShared, uploadSmallShared } from './shared-uploads.ts'
import { read, readings } from './static.ts'
import { uploadLarge, uploadResumable, uploadSmall } from './uploads.ts'

type Measure = (folder: string) => Promise<Finding[]>

/** The rows of the table, in order, by the name for the command line. Each gets an empty folder. */
export const rows: Record<string, Measure> = {
  'static-1k': (folder) => read(readings['static-1k'], folder),
  'static-1k-silent': (folder) => read(readings['static-1k-silent'], folder),
  'static-100k': (folder) => read(readings['static-100k'], folder),
  'static-10m': (folder) => read(readings['static-10m'], folder),
  'static-many': readMany,
  'static-304': (folder) => read(readings['static-304'], folder),
  'upload-1g': uploadLarge,
  'upload-4k': uploadSmall,
  'upload-resumable': uploadResumable,
  history: keepHistory,
  trees: replaceTrees,
  file: readFileRecord,
  catalog: measureCatalog,
  'catalog-past': listWithPast,
  'hosts-cached': readCachedZone,
  'hosts-fresh': readFresh,
  'adds-100': addHundred,
  'shared-1k': readShared,
  'shared-upload-1g': uploadLargeShared,
  'shared-upload-4k': uploadSmallShared,
  'shared-catalog': measureSharedCatalog,
  'replicas-1k': readTwoReplicas,
  'replicas-adds-100': addOverReplicas,
  login: measureLogin,
  memory: measureMemory,
  start: measureStart,
}
