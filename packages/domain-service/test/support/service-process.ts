import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'
import { z } from 'zod'
import { exitWithParent, slowClients } from '../../../../test/support/everything.ts'
import { reservePorts } from '../../../../test/support/ports.ts'
import { password } from '../../../../test/support/test-users.ts'
import type { Suspension } from './campaign-registrar.ts'
import { apiKey } from './start.ts'

const packageDir = join(import.meta.dirname, '../..')

export interface Reply {
  status: number
  code: string | undefined
  body: unknown
}

/** A service in a process of its own, which can be killed and started again on the same folder and port. */
export class ServiceProcess {
  readonly #env: Record<string, string>
  readonly url: string
  #child: ChildProcess | undefined
  #token = ''
  #ready = Promise.withResolvers<void>()
  #isReady = false
  kills = 0
  /** When it stood still. */
  readonly suspensions: Suspension[] = []

  private constructor(port: number, env: Record<string, string>) {
    this.url = `http://127.0.0.1:${port}`
    this.#env = {
      PATH: process.env.PATH ?? '',
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
      PORT: String(port),
      LOG_LEVEL: 'error',
      JWT_SECRET: 'a secret of these tests that is long enough',
      ADMIN_USERNAME: 'admin',
      ADMIN_PASSWORD: password,
      REGISTRAR_API_USER: 'tester',
      REGISTRAR_API_KEY: apiKey,
      REGISTRAR_CLIENT_IP: '127.0.0.1',
      ...slowClients,
      ...env,
    }
  }

  static async create(env: Record<string, string>): Promise<ServiceProcess> {
    return new ServiceProcess(await reservePorts(), env)
  }

  /** Starts the process; `killAt` names a point of a write and how often it is reached, as in `write:sent:3`. */
  async start(killAt = ''): Promise<void> {
    const preloads = [exitWithParent, join(packageDir, 'test/support/kill-at.ts')]
    const args = [...preloads.flatMap((file) => ['--import', file]), 'dist/main.js']
    const child = spawn(process.execPath, args, {
      cwd: packageDir,
      env: { ...this.#env, KILL_AT: killAt },
      stdio: ['pipe', 'ignore', 'inherit'],
    })
    this.#child = child
    child.once('exit', (_code, signal) => {
      // After a failed start, those who wait still wait for the same promise.
      if (this.#isReady) this.#ready = Promise.withResolvers()
      this.#isReady = false
      if (signal === 'SIGKILL') this.kills++
    })
    while ((await this.#send('GET', '/health')).status !== 200) {
      if (!this.isRunning) return
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    if (!this.#token) await this.#logIn()
    this.#isReady = true
    this.#ready.resolve()
  }

  /** The session of `admin`. */
  sessionOf = async (_user = 'admin') => this.#token

  /** Resolves while the service answers. */
  whenReady(): Promise<void> {
    return this.#ready.promise
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Stops the process in the middle of whatever it does, and lets it go on after so many milliseconds. */
  async suspend(milliseconds: number): Promise<void> {
    const child = this.#child
    child?.kill('SIGSTOP')
    const from = Date.now()
    await sleep(milliseconds)
    this.suspensions.push({ from, until: Date.now() })
    child?.kill('SIGCONT')
  }

  /** Resolves when the process has ended. */
  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    if (!this.#child || !this.isRunning) return
    const ended = once(this.#child, 'exit')
    this.#child.kill(signal)
    await ended
  }

  /** Status 0: no answer. */
  call(method: string, path: string, body?: unknown): Promise<Reply> {
    return this.#send(method, path, body)
  }

  /** Repeats a request while it is refused with 503: on a busy machine a service that has just started may shed load. */
  async insist(method: string, path: string, body?: unknown): Promise<Reply> {
    let reply = await this.#send(method, path, body)
    while (reply.status === 503) reply = await this.#send(method, path, body)
    return reply
  }

  async #send(method: string, path: string, body?: unknown): Promise<Reply> {
    try {
      const answer = await request(this.url + path, {
        method,
        headers: {
          authorization: `Bearer ${this.#token}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const received = Reply.parse(await answer.body.json())
      return { status: answer.statusCode, code: received.code, body: received }
    } catch {
      return { status: 0, code: undefined, body: {} }
    }
  }

  async #logIn() {
    const { body } = await this.insist('POST', '/api/auth/login', { username: 'admin', password })
    this.#token = z.object({ access_token: z.string() }).parse(body).access_token
  }
}

const Reply = z.looseObject({ code: z.string().optional() })
