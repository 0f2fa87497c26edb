import { constants } from 'node:zlib'
import { type App, createApp, createMetrics, type Logger } from '@domains-and-files/http'
import compress from '@fastify/compress'
import fastifyStatic from '@fastify/static'
import type { FastifyReply } from 'fastify'
import packageJson from '../package.json' with { type: 'json' }
import type { Config } from './config.ts'
import { contentSecurityPolicy, litFolder, type Page, readPage, webFolder } from './page.ts'

const { version } = packageJson

/** The console's app: the page, its assets, /config.json and /health. It keeps no state and sees no credentials. */
export async function buildApp(config: Config, log: Logger): Promise<App> {
  return createApp(
    {
      about: { title: 'Console', version, description: 'The web page of both services.' },
      ...config,
      log,
      metrics: await createMetrics(config.metricsToken),
      health: () => ({ checks: {} }),
      servesRoot: false,
    },
    async (app) => {
      const page = readPage()
      await app.register(async (routes: App) => {
        // Responses are compressed at each request: the highest quality saves 3 KB of a first load, and takes six times the CPU.
        const brotliOptions = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }
        await routes.register(compress, { encodings: ['br', 'gzip'], brotliOptions, globalDecompression: false })
        routes.addHook('onSend', async (_request, reply, payload) => {
          reply.header('vary', 'accept-encoding')
          return reply.statusCode === 304 ? null : payload // Its empty stream would get a Content-Encoding.
        })
        servePage(routes, page, contentSecurityPolicy(config))
        await serveAssets(routes, page)
        serveConfig(routes, config, page)
      })
    },
  )
}

function servePage(app: App, { html }: Page, policy: string) {
  app.get('/', { schema: { hide: true } }, async (_request, reply: FastifyReply) =>
    reply
      .type('text/html; charset=utf-8')
      .headers({
        'cache-control': 'no-cache',
        'content-security-policy': policy,
        'referrer-policy': 'no-referrer',
      })
      .send(html),
  )
}

async function serveAssets(app: App, { version: assets, styles, litModules }: Page) {
  const caching = { immutable: true, maxAge: '365d', index: false, dotfiles: 'deny' } as const
  const prefix = `/assets/${assets}/`
  await app.register(fastifyStatic, {
    root: litFolder,
    prefix: `${prefix}vendor/`,
    allowedPath: (path) => litModules.includes(`vendor${path}`),
    ...caching,
  })
  app.get(`${prefix}style.css`, { schema: { hide: true } }, async (_request, reply: FastifyReply) =>
    reply.type('text/css; charset=utf-8').header('cache-control', 'public, max-age=31536000, immutable').send(styles),
  )
  await app.register(fastifyStatic, {
    root: webFolder,
    prefix,
    decorateReply: false,
    allowedPath: (path) => /\.(?:js|svg)$|\/icons\.json$/.test(path),
    ...caching,
  })
}

// Public URLs of the services; null hides that half of the page.
function serveConfig(app: App, config: Config, { modules }: Page) {
  app.get('/config.json', { schema: { hide: true } }, async (_request, reply: FastifyReply) =>
    reply.header('cache-control', 'no-cache').send({
      domain_service_url: config.domainServiceUrl ?? null,
      static_service_url: config.staticServiceUrl ?? null,
      max_upload_bytes: config.maxUploadBytes,
      upload_part_bytes: config.uploadPartBytes,
      modules,
      version,
    }),
  )
}
