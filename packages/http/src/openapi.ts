import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod'
import { Problem } from './problem.ts'

/** GET /openapi.json (OpenAPI 3.1, from the schemas that validate) and GET /docs, which needs no other host. */
export async function serveOpenapi(
  app: FastifyInstance,
  about: { title: string; version: string; description: string },
) {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { ...about, license: { name: 'MIT', identifier: 'MIT' } },
      servers: [{ url: '/', description: 'this service' }],
      components: {
        securitySchemes: { token: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      },
    },
    transform: (input) => jsonSchemaTransform({ ...input, schema: describeRoute(input) }),
    transformObject: (input) => dropUnused(tidyPaths(jsonSchemaTransformObject(input))),
  })
  const open = { access: 'public' } as object
  app.get('/openapi.json', { schema: { hide: true }, config: open }, async () => app.swagger())

  // Not the package itself: that is the whole bundle, made for browsers.
  const findFolder = createRequire(import.meta.url)(
    'swagger-ui-dist/absolute-path.js',
  ) as () => string
  const folder = findFolder()
  const pages = [
    ['', 'text/html; charset=utf-8', Buffer.from(page(about.title))],
    ['/start.js', 'text/javascript; charset=utf-8', Buffer.from(start)],
    ['/swagger-ui.css', 'text/css; charset=utf-8', await readFile(`${folder}/swagger-ui.css`)],
    [
      '/swagger-ui-bundle.js',
      'text/javascript; charset=utf-8',
      await readFile(`${folder}/swagger-ui-bundle.js`),
    ],
  ] as const
  for (const [path, type, content] of pages) {
    app.get(`/docs${path}`, { schema: { hide: true }, config: open }, async (_request, reply) =>
      reply.type(type).header('content-security-policy', policy).send(content),
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

const start = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  validatorUrl: null,
  tryItOutEnabled: true,
})
`

interface Route {
  url: string
  schema: object | undefined
  route: { config?: unknown; method: unknown }
}

// Every route may fail in the ways that its access and input allow; said here once, not in each route.
function describeRoute({ url, schema, route }: Route) {
  const given = (schema ?? {}) as { response?: object; hide?: boolean }
  if (given.hide) return given
  const access = (route.config as { access?: string } | undefined)?.access ?? 'public'
  const isOpen = access === 'public'
  const failures = {
    400: problem('The request is not valid'),
    ...(isOpen ? {} : { 401: problem('No token, or not a valid one') }),
    ...(isOpen ? {} : { 403: problem(`Needs the role ${access}`) }),
    default: problem('Any other failure'),
  }
  return {
    operationId: nameOperation(String([route.method].flat()[0]), url),
    ...given,
    response: { ...failures, ...given.response },
    security: isOpen ? [] : [{ token: [] }],
  }
}

const problem = (description: string) => ({
  description,
  content: { 'application/problem+json': { schema: Problem } },
})

// GET /api/domains/:domain/info is getDomainsByDomainInfo.
function nameOperation(method: string, url: string): string {
  const words = url
    .replace(/^\/api\b/, '')
    .replaceAll('*', ':path')
    .replaceAll('/:', '/by-')
    .split(/[^a-zA-Z0-9]+/)
  return (
    method.toLowerCase() +
    words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  )
}

interface Operation {
  parameters?: { name: string }[]
}

// Said once: HEAD answers wherever GET does, and a path alike with and without its last slash. The rest of a path,
// `*` to the router, has a name.
function tidyPaths<Description extends object>(description: Description): Description {
  const { paths = {} } = description as { paths?: Record<string, Record<string, Operation>> }
  for (const [url, operations] of Object.entries(paths)) {
    delete operations.head
    for (const parameter of Object.values(operations).flatMap((each) => each.parameters ?? [])) {
      if (parameter.name === '*') parameter.name = 'path'
    }
    const named = url.replace('{*}', '{path}')
    const isSaid = url.endsWith('/') && url.slice(0, -1) in paths
    if (named !== url || isSaid) delete paths[url]
    if (named !== url) paths[named] = operations
  }
  return description
}

// Each named schema is made in two forms, one as it is sent and one as it is answered; most are used in one.
function dropUnused<Description extends object>(description: Description): Description {
  const { components } = description as { components?: { schemas?: Record<string, unknown> } }
  const schemas = components?.schemas ?? {}
  for (let before = -1; before !== Object.keys(schemas).length; ) {
    before = Object.keys(schemas).length
    const text = JSON.stringify(description)
    for (const name of Object.keys(schemas)) {
      if (!text.includes(`"#/components/schemas/${name}"`)) delete schemas[name]
    }
  }
  return description
}
