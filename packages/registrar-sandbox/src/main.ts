import pino from 'pino'
import { readConfig } from './config.ts'
import { startSandbox } from './index.ts'

const config = readConfig(process.env)
if (typeof config === 'string') {
  process.stderr.write(`${config}\n`)
  process.exit(1)
}
const log = pino({ level: config.LOG_LEVEL })
const sandbox = await startSandbox({
  host: config.HOST,
  port: config.PORT,
  apiUser: config.SANDBOX_API_USER,
  apiKey: config.SANDBOX_API_KEY,
  allowedIps: config.SANDBOX_ALLOWED_IPS,
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
