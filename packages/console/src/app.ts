import { type App, createApp, createMetrics, type Logger } from '@domains-and-files/http'
import compress from '@fastify/compress'
import fastifyStatic from '@fastify/static'
import type { FastifyReply } from 'fastify'
import packageJson from '../package.json' with { type: 'json' }
import type { Config } from './config.ts'
import { contentSecurityPolicy } from './content-security-policy.ts'
import { litFolder, readPage, webFolder } from './page.ts'

const { version } = packageJson

/** The console's app: the page, its assets, /config.json and /health. It keeps no state and sees no credentials. */
export async function buildApp(config: Config, log: Logger): Promise<App> {
  return createApp(
    {
      about: { title: 'Console', version, description: 'The web page of both services.' },
      log,
      trustProxy: config.trustProxy,
      corsOrigins: config.corsOrigins,
      connections: config.connections,
      metrics: await createMetrics(config.metricsToken),
      health: () => ({ checks: {} }),
      servesRoot: false,
    },
    async (app) => {
      await app.register(compress, { threshold: 512 })
      servePage(app, contentSecurityPolicy(config))
      await serveAssets(app, readPage().version)
      serveConfig(app, config)
    },
  )
}

function servePage(app: App, policy: string) {
  const { html } = readPage()
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

async function serveAssets(app: App, assets: string) {
  const caching = { immutable: true, maxAge: '365d', index: false, dotfiles: 'deny' } as const
  const prefix = `/assets/${assets}/`
  await app.register(fastifyStatic, {
    root: litFolder,
    prefix: `${prefix}vendor/`,
    allowedPath: (path) => path === '/lit-html.js',
    ...caching,
  })
  await app.register(fastifyStatic, {
    root: webFolder,
    prefix,
    decorateReply: false,
    allowedPath: (path) => /\.(?:js|css|svg)$/.test(path),
    ...caching,
  })
}

// The services as the browser reaches them; null: that half of the page is not offered.
function serveConfig(app: App, config: Config) {
  app.get('/config.json', { schema: { hide: true } }, async (_request, reply: FastifyReply) =>
    reply.header('cache-control', 'no-cache').send({
      domain_service_url: config.domainServiceUrl ?? null,
      static_service_url: config.staticServiceUrl ?? null,
      version,
    }),
  )
}
