import { execFile, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const root = join(import.meta.dirname, '../../..')

/** The fields of `docker inspect` used here (Docker Engine API, ContainerInspect). */
export interface Container {
  Id: string
  Image: string
  State: {
    Status: string
    ExitCode: number
    OOMKilled: boolean
    Health?: { Status: string }
  }
  Config: { Env: string[] }
  HostConfig: {
    ReadonlyRootfs: boolean
    /** Bytes. */
    Memory: number
    PidsLimit: number | null
    CapDrop: string[] | null
    SecurityOpt: string[] | null
  }
  Mounts: { Type: string; Destination: string }[]
  NetworkSettings: { Ports: Record<string, { HostPort: string }[] | null> }
}

const services = ['registrar-sandbox', 'domain-service', 'static-service', 'console']

/** The compose command: plugin (v2) or standalone (v1); undefined without an engine. */
export function findCompose(): string[] | undefined {
  const works = (command: string, ...args: string[]) => spawnSync(command, args).status === 0
  if (!works('docker', 'info')) return undefined
  if (works('docker', 'compose', 'version')) return ['docker', 'compose']
  return works('docker-compose', 'version') ? ['docker-compose'] : undefined
}

/** Settings of the services: env file and secret files. */
export interface StackSettings {
  /** The compose files, by name. */
  files: string[]
  env: Record<string, string>
  /** Content of each secret file, by the variable that names it. */
  secrets: Record<string, string>
  /** Disposal leaves the images to the next stack. */
  keepsImages?: boolean
}

// One for all stacks of a run, which share their images.
const project = `trial-${randomBytes(4).toString('hex')}`

/** The services in containers under a unique project name; disposal removes them and their volumes. */
export class Stack implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'containers-'))
  readonly #command: string
  readonly #keepsImages: boolean
  readonly #args: string[]

  constructor([command = '', ...args]: string[], settings: StackSettings) {
    const { files, env, secrets, keepsImages = false } = settings
    this.#keepsImages = keepsImages
    const named = Object.entries(secrets).map(([name, content]) => {
      const file = join(this.#folder, name.toLowerCase())
      writeFileSync(file, `${content}\n`, { mode: 0o644 }) // The containers' user must read it.
      return [name, file]
    })
    const lines = [...Object.entries(env), ...named].map((pair) => pair.join('='))
    const envFile = join(this.#folder, 'env')
    writeFileSync(envFile, `${lines.join('\n')}\n`)
    this.#command = command
    this.#args = [
      ...args,
      ...['--project-name', project, '--env-file', envFile],
      ...files.flatMap((file) => ['-f', join(root, file)]),
    ]
  }

  /** Runs a compose command; resolves with its output. */
  compose(...args: string[]): Promise<string> {
    return run(this.#command, [...this.#args, ...args])
  }

  /** Containers by service, running or not. */
  async containers(): Promise<Map<string, Container>> {
    const found = new Map<string, Container>()
    for (const service of services) {
      const filters = [`com.docker.compose.project=${project}`, `com.docker.compose.service=${service}`]
      const labels = filters.flatMap((label) => ['--filter', `label=${label}`])
      const id = await run('docker', ['ps', '--all', '--quiet', ...labels])
      if (!id.trim()) continue
      const inspected: Container[] = JSON.parse(await run('docker', ['inspect', id.trim()]))
      const [container] = inspected
      if (container) found.set(service, container)
    }
    return found
  }

  /** Output of a Node script run inside a container. */
  async evaluate({ Id }: Container, script: string): Promise<string> {
    return (await run('docker', ['exec', Id, 'node', '-p', script])).trim()
  }

  /** Removes volumes by their names in the compose files. No container may have them. */
  removeVolumes(...names: string[]): Promise<string> {
    return run('docker', ['volume', 'rm', ...names.map((name) => `${project}_${name}`)])
  }

  async [Symbol.asyncDispose]() {
    const images = this.#keepsImages ? [] : ['--rmi', 'local']
    await this.compose('--profile', 'backup', 'down', '--volumes', '--remove-orphans', ...images)
    rmSync(this.#folder, { recursive: true })
  }
}

/** Image size in bytes. */
export const sizeOf = async (image: string) =>
  Number(await run('docker', ['image', 'inspect', '--format', '{{.Size}}', image]))

/** Kills a container with SIGKILL. */
export const kill = ({ Id }: Container) => run('docker', ['kill', Id])

// Shell variables would override the env file, so only these are passed.
async function run(command: string, args: string[]): Promise<string> {
  const passed = Object.entries(process.env).filter(([name]) =>
    /^(?:PATH|HOME|DOCKER_.*|COMPOSE_DOCKER_CLI_BUILD|https?_proxy|no_proxy)$/i.test(name),
  )
  const env = Object.fromEntries(passed)
  const { stdout } = await promisify(execFile)(command, args, { env, maxBuffer: 64 * 1024 * 1024 })
  return stdout
}
