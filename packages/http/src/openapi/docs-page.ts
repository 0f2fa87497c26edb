import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { FastifyInstance } from 'fastify'

/** GET /docs: Swagger UI on /openapi.json, a page to read and try the API, which needs no other host. */
export function serveDocsPage(app: FastifyInstance, title: string) {
  // Not the package itself: that is the whole bundle, made for browsers.
  const findFolder = createRequire(import.meta.url)(
    'swagger-ui-dist/absolute-path.js',
  ) as () => string
  const folder = findFolder()
  const pages = [
    ['', 'text/html; charset=utf-8', () => Buffer.from(page(title))],
    ['/start.js', 'text/javascript; charset=utf-8', () => Buffer.from(start)],
    ['/swagger-ui.css', 'text/css; charset=utf-8', () => readFile(`${folder}/swagger-ui.css`)],
    [
      '/swagger-ui-bundle.js',
      'text/javascript; charset=utf-8',
      () => readFile(`${folder}/swagger-ui-bundle.js`),
    ],
  ] as const
  const config = { access: 'public' } as const
  for (const [path, type, read] of pages) {
    app.get(`/docs${path}`, { schema: { hide: true }, config }, async (_request, reply) =>
      reply
        .type(type)
        .header('content-security-policy', policy)
        .send(await read()),
    )
  }
}

// Swagger UI styles inline and shows its icons as data URLs; nothing else is let in, and no other host.
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

// Who logs in on the page is logged in on the page: the token that was answered is sent from then on.
const start = `const docs = SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  validatorUrl: null,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  responseInterceptor: (answer) => {
    const token = answer.ok && answer.body?.access_token
    if (token) docs.preauthorizeApiKey('token', token)
    return answer
  },
})
`
