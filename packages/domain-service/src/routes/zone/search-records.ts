import { domainToUnicode } from 'node:url'
import { allowsDomain } from '@domains-and-files/auth'
import { type App, answers, listSchema, operations, pageQuery, paginate, slices } from '@domains-and-files/http'
import { z } from 'zod'
import type { RecordKey } from '../../dns/record.ts'
import { toRecords } from '../../dns/zone.ts'
import type { Dependencies } from '../../storage.ts'
import { domain } from '../openapi-examples.ts'
import { TypeFilter } from './record-input.ts'
import { DomainName } from './zone-request.ts'
import { HostRecord, visibleRecords } from './zone-schema.ts'

const FoundRecord = HostRecord.extend({
  domain: z.string().meta({ examples: [domain] }),
  read_at: z.iso.datetime().describe('when its zone was last read at the registrar'),
}).meta({ id: 'FoundRecord' })

const { searchRecords } = operations({
  shared: { access: 'viewer', enforcesRecordLimits: true, tags: ['records'] },
  searchRecords: {
    summary: 'Search the records of all domains',
    description:
      'In the zones as they were last read or written here, by name: no call goes to the registrar. `zones_searched` counts them; a domain whose zone was never read is not among them.',
    querystring: z.strictObject({
      search: z
        .string('must be given once, with at most 255 characters')
        .max(255)
        .optional()
        .describe('words that full name, type and value together contain, in any case, Unicode or A-labels'),
      type: TypeFilter,
      domain: DomainName.optional().describe('only of this domain'),
      ...pageQuery(50, 200),
    }),
    ...answers(
      200,
      'One page of records',
      listSchema(undefined, 'records', FoundRecord).extend({ zones_searched: z.int().describe('zones with records') }),
    ),
  },
})

/** GET /api/records. */
export function registerRecordSearch(app: App, { domains, ledger }: Dependencies) {
  app.get('/api/records', searchRecords, async ({ caller, query }) => {
    const words = query.search?.toLowerCase().split(/\s+/) ?? []
    const [first, end] = [(query.page - 1) * query.page_size, query.page * query.page_size]
    const nextSlice = slices()
    const isManaged = new Set(domains.managed)
    const records: z.infer<typeof FoundRecord>[] = []
    let [found, zones_searched] = [0, 0]
    // Other known zones have left the account or its nameservers. Until the list is read, all known zones count.
    const isWanted = (domain: string) =>
      (query.domain ?? domain) === domain &&
      (isManaged.size === 0 || isManaged.has(domain)) &&
      allowsDomain(caller, domain)
    for await (const { zone, readAt } of ledger.knownZones.select(isWanted)) {
      await nextSlice()
      const { domain } = zone
      const visible = visibleRecords(toRecords(zone), caller)
      if (visible.length > 0) zones_searched += 1
      for (const each of visible) {
        if ((query.type && each.type !== query.type) || !hasWords(each, domain, words)) continue
        if (found >= first && found < end) records.push({ domain, ...each, read_at: new Date(readAt).toISOString() })
        found += 1
      }
    }
    return { records, pagination: paginate(query, found), zones_searched }
  })
}

function hasWords({ name, type, address }: RecordKey, domain: string, words: string[]): boolean {
  const full = name === '@' ? domain : `${name}.${domain}`
  const unicode = full.includes('xn--') ? domainToUnicode(full) : ''
  const text = `${name} ${full} ${unicode} ${type} ${address}`.toLowerCase()
  return words.every((word) => text.includes(word))
}
