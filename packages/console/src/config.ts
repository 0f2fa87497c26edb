import { integerSetting, named, readEnv, serverConfig, serverSettings, urlSetting } from '@domains-and-files/http'
import { z } from 'zod'

const serviceUrl = urlSetting
  .refine((url) => !/[?#@;,\s]/.test(url), 'must have no credentials, query or fragment')
  .transform((url) => url.replace(/\/+$/, ''))
  .optional()

export const Settings = z.object({
  ...serverSettings({ port: 3000, dataDir: 'data/console' }), // No data is stored: DATA_DIR is not used.
  DOMAIN_SERVICE_URL: serviceUrl,
  STATIC_SERVICE_URL: serviceUrl,
  MAX_UPLOAD_BYTES: integerSetting(1).default(1_073_741_824),
  UPLOAD_PART_BYTES: integerSetting(65_536).default(16_777_216),
})

export type Config = ReturnType<typeof readConfig>

/**
 * The settings of the console. Service URLs are the public ones, without a trailing slash; a missing one hides that half
 * of the page.
 * @throws {InvalidEnvironment} listing every error.
 */
export function readConfig(env: Record<string, string | undefined>) {
  const settings = readEnv(Settings, env)
  return { ...named(settings), ...serverConfig(settings, env) }
}
