interface ServiceUrls {
  domainServiceUrl: string | undefined
  staticServiceUrl: string | undefined
}

/**
 * The Content-Security-Policy of the page: scripts and styles of its own origin only, API calls to the two services,
 * media and frames from the static service. Trusted Types admit HTML strings of lit-html only.
 */
export function contentSecurityPolicy({ domainServiceUrl, staticServiceUrl }: ServiceUrls): string {
  const domains = originOf(domainServiceUrl)
  const files = originOf(staticServiceUrl)
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src 'self' data: blob:${files}`,
    `media-src blob:${files}`,
    `frame-src${files || " 'none'"}`,
    `connect-src 'self'${[...new Set([domains, files])].join('')}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types lit-html',
  ].join('; ')
}

// The origin alone: a path without a trailing slash would match only itself, not paths below it.
const originOf = (url: string | undefined) => (url ? ` ${new URL(url).origin}` : '')
