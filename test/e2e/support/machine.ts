import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from './step.ts'

const root = join(import.meta.dirname, '../../..')
const image = 'domains-and-files-install-trial'

const dockerfile = `
FROM node:26-bookworm-slim
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends systemd systemd-sysv dbus openssl curl
COPY domains-and-files.tar.gz /opt/
RUN cd /opt && tar -xzf domains-and-files.tar.gz && cd domains-and-files && npm run setup
`

/** A container in which systemd is the first process, with this repository in /opt, and without a network. */
export class Machine implements Disposable {
  readonly #name = `install-${randomBytes(4).toString('hex')}`

  private constructor() {
    docker(
      'run',
      ...['--detach', '--name', this.#name, '--network', 'none'],
      // What systemd needs to mount, to limit and to isolate its units.
      ...['--cap-add', 'SYS_ADMIN', '--security-opt', 'seccomp=unconfined'],
      ...['--security-opt', 'apparmor=unconfined', '--security-opt', 'systempaths=unconfined'],
      ...['--cgroupns', 'host', '--volume', '/sys/fs/cgroup:/sys/fs/cgroup:rw'],
      ...['--tmpfs', '/run', '--tmpfs', '/run/lock', '--tmpfs', '/tmp'],
      ...['--env', 'container=docker', '--env', 'npm_config_prefer_offline=true', image],
      // Credentials are mounted in a mount namespace of their own: without propagation the units do not see them.
      ...['sh', '-c', 'mount --make-rshared / && exec /lib/systemd/systemd'],
    )
  }

  /** Builds the image from the committed sources, and starts it. */
  static async boot(): Promise<Machine> {
    const folder = mkdtempSync(join(tmpdir(), 'install-'))
    try {
      const archive = join(folder, 'domains-and-files.tar.gz')
      const prefix = ['--prefix', 'domains-and-files/']
      execFileSync('git', ['archive', ...prefix, '-o', archive, 'HEAD'], { cwd: root })
      writeFileSync(join(folder, 'Dockerfile'), dockerfile)
      docker('build', '--quiet', '--network', 'host', '--tag', image, folder)
    } finally {
      rmSync(folder, { recursive: true })
    }
    const machine = new Machine()
    await until('systemd runs', async () => {
      const { stdout } = machine.#spawn('systemctl is-system-running')
      return /running|degraded/.test(stdout) || undefined
    })
    return machine
  }

  /** Runs commands as root; returns their output. Rejects the first that fails. */
  run(commands: string): string {
    const { status, stdout, stderr } = this.#spawn(commands)
    assert.equal(status, 0, `${commands}\n${stdout}\n${stderr}`)
    return stdout
  }

  [Symbol.dispose]() {
    docker('rm', '--force', this.#name)
  }

  #spawn(commands: string) {
    const args = ['exec', '--interactive', this.#name, 'bash', '-euo', 'pipefail', '-s']
    return spawnSync('docker', args, { input: commands, encoding: 'utf8' })
  }
}

const docker = (...args: string[]) =>
  execFileSync('docker', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
