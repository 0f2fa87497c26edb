import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import { type App, createApp, createMetrics, type Logger } from '@domains-and-files/http'
import fastifyStatic from '@fastify/static'
import type { FastifyReply, FastifyRequest } from 'fastify'
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
        routes.addHook('onSend', compressOnce())
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

const codings = { br: promisify(brotliCompress), gzip: promisify(gzip) }
const minBytes = 512

/**
 * An `onSend` hook for routes with constant responses. Brotli at the highest quality is slow, so each response is
 * compressed once, at its first request.
 */
function compressOnce() {
  const compressed = new Map<string, Promise<Buffer>>()
  return async (request: FastifyRequest, reply: FastifyReply, payload: unknown) => {
    if (reply.statusCode === 200) reply.header('vary', 'accept-encoding')
    const isWhole = request.method === 'GET' && reply.statusCode === 200
    if (!isWhole || !(payload instanceof Readable || typeof payload === 'string')) return payload
    const coding = codingOf(request.headers['accept-encoding'])
    if (!coding || Number(reply.getHeader('content-length')) < minBytes) return payload
    const key = `${coding} ${request.url.replace(/\?.*/, '')}`
    const known = compressed.get(key)
    const body = known ?? read(payload).then((bytes) => codings[coding](bytes))
    compressed.set(key, body)
    body.catch(() => compressed.delete(key))
    if (known && payload instanceof Readable) payload.destroy()
    const bytes = await body
    reply.header('content-encoding', coding).removeHeader('content-length')
    return bytes
  }
}

const read = async (payload: Readable | string) =>
  typeof payload === 'string' ? Buffer.from(payload) : buffer(payload)

const refused = /; *q=0(?:\.0{1,3})?$/i

/** The best accepted coding; `q=0` excludes one. */
function codingOf(accepted = ''): keyof typeof codings | undefined {
  // Not `split(/\s*,\s*/)`: quadratic in a run of spaces.
  const taken = accepted
    .toLowerCase()
    .split(',')
    .map((part) => part.trim())
  const names = taken.filter((part) => !refused.test(part)).map((part) => part.split(';', 1)[0])
  return names.includes('br') ? 'br' : names.includes('gzip') ? 'gzip' : undefined
}
