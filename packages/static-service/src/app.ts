import { auth, type Users } from '@house/auth'
import { type App, createApp, Gauge, HttpError, type Logger, type Registry } from '@house/http'
import packageJson from '../package.json' with { type: 'json' }
import type { Catalog } from './catalog.ts'
import type { Compressor } from './compress.ts'
import type { Config } from './config.ts'
import { invalidPath } from './errors.ts'
import { serveFiles } from './files.ts'
import { serveStatic } from './serve.ts'
import type { Store } from './store.ts'
import { serveUploads } from './upload.ts'
import { serveVersions } from './versions.ts'

export interface Parts {
  config: Config
  secret: string
  users: Users
  catalog: Catalog
  store: Store
  compressor: Compressor
  metrics: Registry
  log: Logger
}

/** The static service's app, all its routes in place, not yet listening. */
export function buildApp(parts: Parts): Promise<App> {
  const { config, catalog, store, compressor, users, secret } = parts
  observe(parts)
  return createApp(
    {
      about: {
        title: 'Static file service',
        version: packageJson.version,
        description:
          'Files under paths, served to everybody, and the versions of what they make up.',
      },
      log: parts.log,
      trustProxy: config.trustProxy,
      corsOrigins: config.corsOrigins,
      connections: config.connections,
      metrics: { registry: parts.metrics, token: config.metricsToken },
      health: () => report(parts),
      badUrl: () => invalidPath('it is not valid percent-encoded UTF-8'),
    },
    async (app) => {
      await app.register(auth, {
        secret,
        audience: 'static-service',
        tokenTtl: config.auth.tokenTtl,
        users,
        refuse,
      })
      await serveUploads(app, {
        ...config,
        store,
        catalog,
        onStored: (row) => compressor.enqueue(row),
      })
      serveFiles(app, { catalog, publicBaseUrl: config.publicBaseUrl })
      serveVersions(app, catalog)
      serveStatic(app, { store, catalog, compressor, rules: config.static })
    },
  )
}

const refuse = (
  status: number,
  code: string,
  detail: string,
  headers: Record<string, string> = {},
) => new HttpError(status, code, detail, { headers })

function report({ catalog, store }: Parts) {
  const disk = { status: store.checkDisk() }
  try {
    const { newest } = catalog.check()
    return {
      checks: { database: { status: 'ok' as const }, disk },
      fields: { current_version: newest?.version ?? null },
    }
  } catch {
    return {
      checks: { database: { status: 'unavailable' as const }, disk },
      fields: { current_version: null },
    }
  }
}

function observe({ metrics, catalog, store }: Parts) {
  const registers = [metrics]
  const gauges = {
    files: ['Files that are stored', () => catalog.check().totals.totalFiles],
    file_bytes: ['Bytes of all files', () => catalog.check().totals.totalSize],
    stored_bytes: ['Bytes of the distinct contents', () => catalog.check().totals.storedSize],
    contents_in_use: ['Contents that are being read or added', () => store.busy],
  } as const
  for (const [name, [help, read]] of Object.entries(gauges)) {
    new Gauge({
      name: `static_${name}`,
      help,
      registers,
      collect() {
        this.set(read())
      },
    })
  }
}
