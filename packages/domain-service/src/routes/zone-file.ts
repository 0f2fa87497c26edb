import { isUtf8 } from 'node:buffer'
import { type App, malformedBody } from '@domains-and-files/http'
import type { ZoneWriter } from '../zones/zone-writer.ts'
import { getZoneFile } from './zone-file/get-zone-file.ts'
import { putZoneFile } from './zone-file/put-zone-file.ts'

/** The routes of /api/domains/{domain}/dns/zonefile, the only ones that take text/dns (RFC 4027), and nothing else. */
export async function registerZoneFileRoutes(app: App, zones: ZoneWriter) {
  await app.register(async (scope: App) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser<Buffer>(
      'text/dns',
      { parseAs: 'buffer' },
      (_request, body, done) => {
        if (!isUtf8(body)) return done(malformedBody('The body is not valid UTF-8'))
        const text = body.toString()
        // An upload that lost its content would delete every record.
        if (text.trim() === '') return done(malformedBody('The body is empty: send a zone file'))
        done(null, text)
      },
    )
    getZoneFile(scope, zones)
    putZoneFile(scope, zones)
  })
}
