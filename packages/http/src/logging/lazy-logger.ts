import type { FastifyBaseLogger } from 'fastify'
import type { Logger } from './logger.ts'

type Level = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace'

/**
 * The framework's logger. Its child for a request is created with the first line that is written: most requests log none
 * but the access log's, and plugins log their steps at levels that are off. The level is that of `root`.
 */
export class LazyLogger {
  readonly #root: Pick<Logger, 'isLevelEnabled'>
  readonly #create: () => FastifyBaseLogger
  #created: FastifyBaseLogger | undefined

  constructor(root: Pick<Logger, 'isLevelEnabled'>, create: () => FastifyBaseLogger) {
    this.#root = root
    this.#create = create
  }

  get level() {
    return this.#logger.level
  }

  child(...args: Parameters<FastifyBaseLogger['child']>) {
    return new LazyLogger(this.#root, () => this.#logger.child(...args))
  }

  fatal(...args: unknown[]) {
    this.#log('fatal', args)
  }

  error(...args: unknown[]) {
    this.#log('error', args)
  }

  warn(...args: unknown[]) {
    this.#log('warn', args)
  }

  info(...args: unknown[]) {
    this.#log('info', args)
  }

  debug(...args: unknown[]) {
    this.#log('debug', args)
  }

  trace(...args: unknown[]) {
    this.#log('trace', args)
  }

  silent() {}

  #log(level: Level, args: unknown[]) {
    if (this.#root.isLevelEnabled(level)) Reflect.apply(this.#logger[level], this.#logger, args)
  }

  get #logger(): FastifyBaseLogger {
    this.#created ??= this.#create()
    return this.#created
  }
}
