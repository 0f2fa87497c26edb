import type { App } from '@domains-and-files/http'
import type { ZoneWriter } from '../zones/zone-writer.ts'
import { addRecord } from './records/add-record.ts'
import { getRecord } from './records/get-record.ts'
import { getZone } from './records/get-zone.ts'
import { patchRecord } from './records/patch-record.ts'
import { patchZone } from './records/patch-zone.ts'
import { removeRecord } from './records/remove-record.ts'
import { replaceZone } from './records/replace-zone.ts'

/** The routes of /api/domains/{domain}/dns/hosts. */
export function registerRecordRoutes(app: App, zones: ZoneWriter) {
  for (const register of [
    getZone,
    replaceZone,
    patchZone,
    addRecord,
    getRecord,
    patchRecord,
    removeRecord,
  ]) {
    register(app, zones)
  }
}
