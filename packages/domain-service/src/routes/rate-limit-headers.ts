import type { App, HeaderDoc } from '@domains-and-files/http'
import type { WindowState } from '../budget/call-quota.ts'
import { windowMs } from '../budget/call-windows.ts'
import type { RegistrarClient } from '../registrar/client.ts'

const rateLimitHeaders: Record<string, HeaderDoc> = {
  'ratelimit-policy': {
    description:
      "The registrar's limits for the whole account: quota (q) per window in seconds (w)",
    example: '"minute";q=20;w=60, "hour";q=700;w=3600, "day";q=8000;w=86400',
  },
  ratelimit: {
    description: 'Calls left (r) of each, and seconds until the next one is free (t)',
    example: '"minute";r=17;t=42, "hour";r=697;t=3582, "day";r=7997;t=86382',
  },
}

/**
 * Adds RateLimit-Policy and RateLimit to every answer of routes under /api/domains, errors included
 * (draft-ietf-httpapi-ratelimit-headers). Register it before these routes.
 */
export function addRateLimitHeaders(app: App, registrar: RegistrarClient) {
  const policy = registrar.quota
    .state()
    .map(({ window, limit }) => `"${window}";q=${limit};w=${windowMs[window] / 1000}`)
    .join(', ')
  app.addHook('onRoute', (route) => {
    if (!route.url.startsWith('/api/domains')) return
    for (const response of Object.values(route.schema?.responses ?? {}))
      response.headers = { ...response.headers, ...rateLimitHeaders }
    route.onSend = [
      ...[route.onSend ?? []].flat(),
      (_request, reply, payload, done) => {
        const left = describeLeft(registrar.quota.state())
        reply.header('ratelimit-policy', policy).header('ratelimit', left)
        done(null, payload)
      },
    ]
  })
}

const describeLeft = (windows: WindowState[]) =>
  windows
    .map(
      ({ window, left, nextFreeMs }) => `"${window}";r=${left};t=${Math.ceil(nextFreeMs / 1000)}`,
    )
    .join(', ')
