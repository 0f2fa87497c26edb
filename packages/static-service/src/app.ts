import type { IncomingMessage } from 'node:http'
import { auth } from '@domains-and-files/auth'
import { serveEvents } from '@domains-and-files/events'
import {
  type App,
  clientAddressReader,
  createApp,
  forwardingCheck,
  type HealthReport,
  systemClock,
} from '@domains-and-files/http'
import packageJson from '../package.json' with { type: 'json' }
import type { FileRow } from './catalog/tables.ts'
import type { Dependencies } from './dependencies.ts'
import { undecodableUrl } from './errors.ts'
import { registerMetrics } from './metrics.ts'
import { registerAccessRoutes } from './routes/access.ts'
import { limitToFolders } from './routes/callers.ts'
import { eventSource } from './routes/events.ts'
import { registerBrowseRoutes } from './routes/files/browse.ts'
import { registerBulkRoutes } from './routes/files/bulk-changes.ts'
import { registerFileRoutes, registerPutFileRoute } from './routes/files/files.ts'
import { type FileDependencies, fileDescriber, registerRawBodies, UploadLimits } from './routes/files/store-files.ts'
import { registerUploadRoutes } from './routes/files/uploads.ts'
import { registerChangeRoutes } from './routes/history/changes.ts'
import { registerHistoryRoutes } from './routes/history/history.ts'
import { registerVersionRoutes } from './routes/history/versions.ts'
import { registerLinkRoutes } from './routes/links.ts'
import { documentRawRoute, staticSchema } from './routes/static.ts'
import { registerGetTreeRoute } from './routes/trees/get-tree.ts'
import { registerPutTreeRoutes } from './routes/trees/put-tree.ts'
import { exposedTusHeaders } from './routes/tus/tus-headers.ts'
import { registerResumableRoutes } from './routes/tus/tus-routes.ts'
import { ContentCache } from './serving/content-cache.ts'
import { LinkHandler } from './serving/link-handler.ts'
import { privateHeaders, readableFiles } from './serving/readable-files.ts'
import { asPrivate, describeFile } from './serving/served-file.ts'
import { StaticHandler } from './serving/static-handler.ts'
import { Links, linkTokens } from './sharing/links.ts'

/** The app of the static service with all routes, not yet listening. */
export function buildApp(parts: Dependencies): Promise<App> {
  const { config, log, metrics } = parts
  const serving = createServing(parts)
  registerMetrics(parts, serving.cache.memory)
  return createApp(
    {
      about: { title: 'Static file service', version: packageJson.version, description, tags },
      ...config,
      log,
      metrics,
      exposedHeaders: exposedTusHeaders,
      alarmingCodes: ['insufficient_storage'],
      health: () => report(parts),
      rawRoutes: [serving.handler, serving.linkHandler],
      redaction: linkTokens,
      badUrl: undecodableUrl,
    },
    (app) => registerRoutes(app, parts, serving),
  )
}

function createServing({ config, auth, catalog, store, compressor, rules }: Dependencies) {
  const policies = config.static
  const cache = new ContentCache({ store, catalog, compressor, policies })
  const clientAddress = clientAddressReader(config.trustProxy)
  const findReader = (request: IncomingMessage) =>
    auth.findReader({ headers: request.headers, ip: clientAddress(request) })
  const files = readableFiles({ cache, rules, findReader })
  const isForwarded = forwardingCheck(config.trustProxy)
  // Files have dates of the storage's clock, responses that of this machine: Last-Modified is never later than either.
  const now = () => Math.min(auth.now(), Date.now())
  const handler = new StaticHandler({ cache, files, rules: policies, isForwarded, now })
  const links = new Links(auth.database, auth.now)
  const linkHandler = new LinkHandler({ links, cache, catalog, handler, findCaller: auth.findCaller })
  const past = (row: FileRow) => asPrivate(describeFile(row, policies), privateHeaders)
  return { cache, handler, linkHandler, links, past }
}

async function registerRoutes(app: App, parts: Dependencies, serving: ReturnType<typeof createServing>) {
  const { config, catalog, store, rules } = parts
  const { cache, links } = serving
  await app.register(auth, parts.auth)
  serveEvents(app, { ...parts, outbox: catalog.database, source: eventSource, clock: systemClock })
  limitToFolders(app)
  const base = config.publicBaseUrl
  const files: FileDependencies = {
    store,
    catalog,
    cache,
    limits: new UploadLimits(catalog, config.maxUploadBytes, config.catalog.quotaBytes),
    maxBatchFiles: config.maxBatchFiles,
    trees: config.trees,
    describe: fileDescriber(rules, base),
    onStored: parts.compressor.enqueue,
  }
  await registerUploadRoutes(app, files)
  await registerResumableRoutes(app, { ...files, uploads: parts.uploads })
  rules.onChange = () => cache.files.invalidate('all')
  registerBrowseRoutes(app, files)
  registerFileRoutes(app, files)
  registerBulkRoutes(app, files)
  registerVersionRoutes(app, catalog)
  registerChangeRoutes(app, catalog)
  registerGetTreeRoute(app, files)
  registerAccessRoutes(app, rules)
  registerHistoryRoutes(app, { ...files, ...serving })
  await registerRawBodies(app, (scope) => {
    registerPutFileRoute(scope, files)
    registerPutTreeRoutes(scope, files)
  })
  registerLinkRoutes(app, { links, catalog, base, findCaller: parts.auth.findCaller })
  documentRawRoute(app, '/static/*', staticSchema)
}

function report({ auth: { checks }, catalog, store, uploads }: Dependencies): HealthReport {
  const { isAvailable, totals } = catalog.status()
  const working = uploads.isIntact ? 'ok' : 'degraded'
  return {
    checks: {
      database: { status: isAvailable ? working : 'unavailable' },
      ...store.check(),
      ...checks(),
    },
    fields: { current_version: totals?.newestVersion ?? null },
  }
}

const description = `Stores files under paths, serves them to everybody or to those who may read them, and keeps version records.

**Try it here**: log in with \`POST /api/auth/login\`; this page then sends the token. Upload a file, and read it at \`/static/{path}\`.

- Every error is \`application/problem+json\` (RFC 9457) with a stable \`code\`.
- A 2xx response means durable on disk; a failed request leaves nothing behind.
- A path is UTF-8 without a leading slash, at most 1024 bytes and 32 segments. \`categories\`, \`tree\` and \`upload\` cannot be its first segment. It is either a file or a directory.
- Every response has an \`x-request-id\`, also in the log; send your own to find your requests.`

const tags = [
  { name: 'auth', description: 'Login and current user' },
  { name: 'files', description: 'Store, list, search, describe and delete' },
  { name: 'trees', description: 'A folder as one thing: download it, replace it in one step' },
  { name: 'static', description: 'Contents of files' },
  { name: 'access', description: 'Private folders, and links to files' },
  { name: 'history', description: 'What changed, by whom' },
  { name: 'versions', description: 'Version records' },
  { name: 'events', description: 'What happens, for those who want to know' },
  { name: 'operations', description: 'For probes and operators' },
]
