import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { type Everything, root, unlimited } from '../../support/everything.ts'
import { reservePorts } from '../../support/ports.ts'
import { Line } from './line.ts'

type Name = 'domain-service' | 'static-service'

/** A service that can be killed, behind a line that can be cut, with a console of its own. */
export class ServiceAlone implements AsyncDisposable {
  readonly everything: Everything
  readonly line: Line
  readonly #name: Name
  readonly #env: Record<string, string>
  readonly #console: ChildProcess
  #service: ChildProcess | undefined

  private constructor(base: Everything, name: Name, line: Line, port: number, settings: typeof process.env) {
    this.line = line
    this.#name = name
    const dataDir = mkdtempSync(join(base.dataDir, 'alone-'))
    const at = (offset: number) => `http://127.0.0.1:${port + offset}`
    const password = randomBytes(12).toString('hex')
    this.#env = {
      PORT: String(port),
      DATA_DIR: dataDir,
      USERS_FILE: join(dataDir, 'users.json'),
      ADMIN_USERNAME: 'admin',
      ADMIN_PASSWORD: password,
      CORS_ORIGIN: at(1),
      SANDBOX_URL: `${base.sandbox}/xml.response`,
      ...unlimited,
    }
    const isDomains = name === 'domain-service'
    this.#console = run('console', {
      PORT: String(port + 1),
      [isDomains ? 'DOMAIN_SERVICE_URL' : 'STATIC_SERVICE_URL']: at(2),
      ...settings,
    })
    const urls = isDomains ? { domains: at(2), files: '' } : { domains: '', files: at(2) }
    this.everything = { ...base, ...urls, console: at(1), dataDir, password }
  }

  /** `settings`: of the console. */
  static async start(base: Everything, name: Name, settings: typeof process.env = {}): Promise<ServiceAlone> {
    const port = await reservePorts(3)
    const alone = new ServiceAlone(base, name, await Line.open(port + 2, port), port, settings)
    await Promise.all([alone.startService(), untilHealthy(alone.everything.console)])
    return alone
  }

  async startService() {
    this.#service = run(this.#name, this.#env)
    await untilHealthy(`http://127.0.0.1:${this.#env.PORT}`)
  }

  async kill() {
    if (!this.#service) return
    const ended = once(this.#service, 'exit')
    this.#service.kill('SIGKILL')
    await ended
  }

  async [Symbol.asyncDispose]() {
    const ended = once(this.#console, 'exit')
    this.#console.kill()
    await Promise.all([ended, this.kill(), this.line[Symbol.asyncDispose]()])
  }
}

const run = (name: string, env: typeof process.env) =>
  spawn(process.execPath, [join(root, 'packages', name, 'dist/main.js')], {
    env: { ...process.env, LOG_LEVEL: 'error', HOST: '127.0.0.1', ...env },
    stdio: 'inherit',
  })

/** The services say nothing when they are ready, so that this asks. */
async function untilHealthy(url: string) {
  for (;;) {
    const response = await fetch(`${url}/health`).catch(() => undefined)
    if (response?.ok) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
