import { authConfig, authSettings } from '@domains-and-files/auth'
import { readEnv, serverConfig, serverSettings } from '@domains-and-files/http'
import { z } from 'zod'

const bytes = z.coerce.number().int().min(0)

// A header's value: visible ASCII and spaces (RFC 9110, 5.5).
const headerValue = z.string().regex(/^[\x20-\x7e]+$/, 'must be printable ASCII')

export const Settings = z.object({
  ...serverSettings({ port: 3002, dataDir: 'data/static-service' }),
  ...authSettings,
  MAX_UPLOAD_BYTES: bytes.min(1).default(1_073_741_824),
  MAX_BATCH_FILES: z.coerce.number().int().min(1).max(1000).default(100),
  QUOTA_BYTES: bytes.optional(),
  PUBLIC_BASE_URL: z
    .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
    .transform((url) => url.replace(/\/+$/, ''))
    .optional(),
  STATIC_CACHE_CONTROL: headerValue.default('public, max-age=0, must-revalidate'),
  STATIC_INDEX: z
    .string()
    .regex(/^[^/\\\p{Cc}]{1,100}$/u, 'must be a file name such as index.html')
    .optional(),
  STATIC_CSP: headerValue.default(
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
  ),
  MEMORY_CACHE_BYTES: bytes.default(67_108_864),
  STATIC_OFFLOAD: z
    .enum(['off', 'nginx', 'caddy'], { error: 'must be off, nginx or caddy' })
    .default('off'),
  STATIC_OFFLOAD_BYTES: bytes.default(262_145),
})

export type Config = ReturnType<typeof readConfig>

/**
 * Every variable of this service, with its rule and default.
 * @throws {InvalidEnvironment} listing every error.
 */
export function readConfig(env: Record<string, string | undefined>) {
  const settings = readEnv(Settings.superRefine(demandProxy), env)
  const { STATIC_OFFLOAD: to, STATIC_OFFLOAD_BYTES: minBytes } = settings
  return {
    ...serverConfig(settings),
    auth: authConfig(settings),
    maxUploadBytes: settings.MAX_UPLOAD_BYTES,
    maxBatchFiles: settings.MAX_BATCH_FILES,
    /** Bytes of the distinct contents; absent: as many as the disk takes. */
    quotaBytes: settings.QUOTA_BYTES,
    /** Without a slash at its end. */
    publicBaseUrl: settings.PUBLIC_BASE_URL,
    static: {
      cacheControl: settings.STATIC_CACHE_CONTROL,
      index: settings.STATIC_INDEX,
      /** The Content-Security-Policy of HTML, SVG and XML; `off` sends none. */
      csp: settings.STATIC_CSP === 'off' ? undefined : settings.STATIC_CSP,
      memoryCacheBytes: settings.MEMORY_CACHE_BYTES,
      /** The proxy that sends large files; absent: they are sent from here. */
      offload: to === 'off' ? undefined : { to, minBytes },
    },
  }
}

// Only who is trusted as a proxy is left to send a body.
function demandProxy(settings: z.output<typeof Settings>, context: z.core.$RefinementCtx) {
  if (settings.STATIC_OFFLOAD === 'off' || settings.TRUST_PROXY) return
  context.addIssue({
    code: 'custom',
    path: ['TRUST_PROXY'],
    message: 'must say who the proxy is that STATIC_OFFLOAD leaves the bodies to',
  })
}
