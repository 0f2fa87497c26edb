interface ServiceUrls {
  domainServiceUrl: string | undefined
  staticServiceUrl: string | undefined
}

/**
 * The policy of the page: scripts and styles of its own origin only, API calls to the two services, media and frames
 * from the static service, and HTML strings through the policy of lit-html alone.
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

// The origin alone: a path in a source expression would match that path only, not what lies below it.
const originOf = (url: string | undefined) => (url ? ` ${new URL(url).origin}` : '')
