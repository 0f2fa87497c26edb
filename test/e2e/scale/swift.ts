import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { reservePorts } from '../../support/ports.ts'
import { untilListening } from '../support/until-listening.ts'

const bucket = 'contents'
const credentials = { AWS_ACCESS_KEY_ID: 'test:tester', AWS_SECRET_ACCESS_KEY: 'testing' }

/** Debian's OpenStack Swift with one copy of everything, speaking S3. `env` are the settings of a service that uses it. */
export async function startSwift(): Promise<{ env: Record<string, string> } & AsyncDisposable> {
  const folder = mkdtempSync(join(tmpdir(), 'swift-'))
  const servers = new Map<number, ChildProcess>()
  mkdirSync(join(folder, 'devices', 'd'), { recursive: true })
  writeFileSync(
    join(folder, 'swift.conf'),
    `[swift-hash]
swift_hash_path_prefix = tests
swift_hash_path_suffix = tests
[storage-policy:0]
name = default
default = yes
`,
  )
  for (const kind of ['account', 'container', 'object']) {
    const port = await reservePorts()
    buildRing(folder, kind, port)
    servers.set(port, startServer(folder, kind, storageConfig(folder, kind, port)))
  }
  const port = await reservePorts()
  servers.set(port, startServer(folder, 'proxy', proxyConfig(folder, port)))
  for (const [each, server] of servers) await untilListening(each, server)
  return {
    env: {
      S3_BUCKET: bucket,
      S3_ENDPOINT: `http://127.0.0.1:${port}`,
      S3_FORCE_PATH_STYLE: 'true',
      ...credentials,
    },
    async [Symbol.asyncDispose]() {
      for (const child of servers.values()) {
        child.kill('SIGTERM')
        await once(child, 'exit')
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function buildRing(folder: string, kind: string, port: number) {
  const builder = join(folder, `${kind}.builder`)
  for (const args of [['create', '4', '1', '1'], ['add', `r1z1-127.0.0.1:${port}/d`, '1'], ['rebalance']]) {
    const { status, stderr } = spawnSync('swift-ring-builder', [builder, ...args])
    if (status !== 0) throw new Error(`swift-ring-builder ${args}: ${stderr}`)
  }
}

function startServer(folder: string, kind: string, config: string): ChildProcess {
  const file = join(folder, `${kind}-server.conf`)
  writeFileSync(file, config)
  return spawn(`swift-${kind}-server`, [file], { stdio: ['ignore', 'ignore', 'inherit'] })
}

const common = (folder: string, port: number) => `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
user = ${userInfo().username}
swift_dir = ${folder}
workers = 0
log_level = ERROR
`

const storageConfig = (folder: string, kind: string, port: number) => `${common(folder, port)}
devices = ${join(folder, 'devices')}
mount_check = false
disable_fallocate = true
[pipeline:main]
pipeline = ${kind}-server
[app:${kind}-server]
use = egg:swift#${kind}
`

const proxyConfig = (folder: string, port: number) => `${common(folder, port)}
[pipeline:main]
pipeline = catch_errors gatekeeper cache listing_formats s3api tempauth copy slo dlo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:s3api]
use = egg:swift#s3api
s3_acl = false
[filter:cache]
use = egg:swift#memcache
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
`
