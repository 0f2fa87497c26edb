import pino from 'pino'
import { z } from 'zod'
import { ratePattern } from './server/rate-limit.ts'
import { startSandbox } from './server/server.ts'

const Config = z.object({
  HOST: z.string().default('127.0.0.1'),
  PORT: z.coerce.number().int().min(0).max(65_535).default(3003),
  SANDBOX_API_USER: z.string().max(20).default('sandbox'),
  SANDBOX_API_KEY: z.string().max(50).default('sandbox-key-for-development-only'),
  SANDBOX_RATE: z
    .string()
    .regex(ratePattern, 'must look like 20/minute,700/hour,8000/day, or be off')
    .default('20/minute,700/hour,8000/day'),
  SANDBOX_FILE: z.string().optional(),
  SANDBOX_DELAY_MS: z.coerce.number().int().min(0).max(600_000).default(0),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
})

// Empty variables count as absent.
const given = Object.entries(process.env).filter(([, value]) => value !== '')
const { data: config, error } = Config.safeParse(Object.fromEntries(given))
if (!config) {
  const faults = error.issues.map(({ path, message }) => `  ${path.join('.')}: ${message}\n`)
  process.stderr.write(`The environment is not valid:\n${faults.join('')}`)
  process.exit(1)
}
const log = pino({ level: config.LOG_LEVEL })
const sandbox = await startSandbox({
  host: config.HOST,
  port: config.PORT,
  apiUser: config.SANDBOX_API_USER,
  apiKey: config.SANDBOX_API_KEY,
  rate: config.SANDBOX_RATE,
  ...(config.SANDBOX_FILE ? { file: config.SANDBOX_FILE } : {}),
  delayMs: config.SANDBOX_DELAY_MS,
  log,
})
log.info({ url: sandbox.url, file: config.SANDBOX_FILE }, 'sandbox listening')

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, async () => {
    log.info({ signal }, 'sandbox stopping')
    await sandbox.close()
    process.exit(0)
  })
}
