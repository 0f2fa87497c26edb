import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { hiddenRoute } from '../requests/validation.ts'

// docs/adr/0014-docs-page.md says why this is not @fastify/swagger-ui.

/** GET /docs: Swagger UI on /openapi.json, to read and try the API. Loads nothing from other hosts. */
export function serveDocsPage(app: FastifyInstance, title: string) {
  // Relative redirect: a proxy may serve this app under a prefix.
  app.get('/docs/', hiddenRoute, (_request, reply) => reply.redirect('../docs', 308))
  serveAsset(app, '/docs', 'html', async () => Buffer.from(page(title)))
  serveAsset(app, '/docs/start.js', 'javascript', async () => Buffer.from(start))
  serveAsset(app, '/docs/swagger-ui.css', 'css', () => readFile(`${swaggerFolder()}/swagger-ui.css`))
  serveAsset(app, '/docs/swagger-ui-bundle.js', 'javascript', () => readFile(`${swaggerFolder()}/swagger-ui-bundle.js`))
}

/** Serves a text, loaded and compressed when first requested. */
function serveAsset(app: FastifyInstance, url: string, subtype: string, load: () => Promise<Buffer>) {
  let asset: Promise<{ body: Buffer; compressed: Buffer }> | undefined
  app.get(url, hiddenRoute, async (request, reply) => {
    asset ??= load().then(async (body) => ({ body, compressed: await promisify(gzip)(body) }))
    const { body, compressed } = await asset
    reply.type(`text/${subtype}; charset=utf-8`).headers({
      'content-security-policy': policy,
      'cache-control': 'public, max-age=3600',
      vary: 'accept-encoding',
    })
    const acceptsGzip = /\bgzip\b(?! *; *q=0(?:\.0{1,3})?\b(?!\.))/i.test(request.headers['accept-encoding'] ?? '')
    return acceptsGzip ? reply.header('content-encoding', 'gzip').send(compressed) : reply.send(body)
  })
}

// Of a small module instead of the package's main one, which is the whole browser bundle.
const swaggerFolder = (): string => createRequire(import.meta.url)('swagger-ui-dist/absolute-path.js')()

// Swagger UI uses inline styles and data URLs for icons. Nothing else is allowed, and no other host.
const policy =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; frame-ancestors 'none'; base-uri 'none'"

const page = (title: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="docs"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`

// After a login on the page, its token is sent with every request. Swagger UI percent-encodes slashes in path parameters,
// but the URL of a file has plain slashes.
const start = `const docs = SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  validatorUrl: null,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  requestInterceptor: (request) => {
    const [path, ...query] = request.url.split('?')
    request.url = [path.replace(/%2F/gi, '/'), ...query].join('?')
    return request
  },
  responseInterceptor: (response) => {
    const token = response.ok && response.body?.access_token
    if (token) docs.preauthorizeApiKey('token', token)
    return response
  },
})
`
