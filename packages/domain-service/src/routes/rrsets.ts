import type { App } from '@domains-and-files/http'
import type { ZoneWriter } from '../zones/zone-writer.ts'
import { getRrset } from './rrsets/get-rrset.ts'
import { listRrsets } from './rrsets/list-rrsets.ts'
import { removeRrset } from './rrsets/remove-rrset.ts'
import { setRrset } from './rrsets/set-rrset.ts'

/** The routes of /api/domains/{domain}/dns/rrsets. */
export function registerRrsetRoutes(app: App, zones: ZoneWriter) {
  for (const register of [listRrsets, getRrset, setRrset, removeRrset]) register(app, zones)
}
