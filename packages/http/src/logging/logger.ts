import { type DestinationStream, type Logger as PinoLogger, pino } from 'pino'
import { type LogOutput, standardOutput, timestamp } from './log-output.ts'

/** A pino logger with its output; child loggers inherit `output`. */
export type Logger = PinoLogger & { readonly output: LogOutput }

/** Logs JSON lines to standard output and redacts credentials. Tests pass another destination as `to`. */
export function createLogger(
  settings: { name: string; level: string },
  to?: DestinationStream,
): Logger {
  const output = to ? unbatched(to) : standardOutput()
  const options = {
    level: settings.level,
    base: { name: settings.name },
    timestamp: () => `,"time":"${timestamp()}"`,
    formatters: { level: (level: string) => ({ level }) },
    redact: { paths: secretPaths, censor: '[redacted]' },
  }
  return Object.assign(pino(options, output), { output })
}

const unbatched = (to: DestinationStream): LogOutput => ({
  write: (line) => to.write(line),
  writeBatched: (line) => to.write(line),
  droppedLines: 0,
})

const secretNames = [
  'authorization',
  'password',
  'access_token',
  'token',
  'secret',
  'ApiKey',
  'apiKey',
]
const secretPaths = secretNames.flatMap((name) => [name, `*.${name}`, `*.*.${name}`])
