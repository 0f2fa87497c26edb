import { isIPv4 } from 'node:net'
import { z } from 'zod'
import { ratePattern } from './server/rate-limit.ts'

const Config = z.object({
  HOST: z.string().default('127.0.0.1'),
  PORT: z.coerce.number().int().min(0).max(65_535).default(3003),
  SANDBOX_API_USER: z.string().max(20).default('sandbox'),
  SANDBOX_API_KEY: z.string().max(50).default('sandbox-key-for-development-only'),
  SANDBOX_ALLOWED_IPS: z
    .string()
    .default('127.0.0.1')
    .transform((text) => text.split(',').map((part) => part.trim()))
    .refine((list) => list.every((part) => part === '*' || isIPv4(part)), {
      message: 'must be IPv4 addresses or *, separated by commas',
    }),
  SANDBOX_RATE: z
    .string()
    .regex(ratePattern, 'must look like 20/minute,700/hour,8000/day, or be off')
    .default('20/minute,700/hour,8000/day'),
  SANDBOX_FILE: z.string().optional(),
  SANDBOX_DELAY_MS: z.coerce.number().int().min(0).max(600_000).default(0),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
})

/** Reads the settings; empty variables count as absent. @returns a text naming every fault, if there is one. */
export function readConfig(env: Record<string, string | undefined>) {
  const given = Object.entries(env).filter(([, value]) => value !== '')
  const result = Config.safeParse(Object.fromEntries(given))
  if (result.success) return result.data
  const lines = result.error.issues.map(({ path, message }) => `  ${path.join('.')}: ${message}`)
  return `The environment is not valid:\n${lines.join('\n')}`
}
