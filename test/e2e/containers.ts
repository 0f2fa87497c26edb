import assert from 'node:assert/strict'
import { createHmac, randomBytes } from 'node:crypto'
import { reservePorts } from '../support/ports.ts'
import { Client } from './support/client.ts'
import { seeDomains, seeFiles, useDomains, useFiles } from './support/scenario.ts'
import { findCompose, kill, Stack, sizeOf } from './support/stack.ts'
import { step, until } from './support/step.ts'

// The images and compose files on a real engine, through the published ports only.

const base = 'node:26-bookworm-slim'
const maxAddedBytes = 120e6
const mebibyte = 1024 * 1024

const compose = findCompose()
if (!compose) {
  process.stderr.write('No container engine answers: start one, or name it in DOCKER_HOST.\n')
  process.exit(2)
}

const [domainPort, staticPort, consolePort] = await Promise.all([reservePorts(), reservePorts(), reservePorts()])
const domains = new Client(domainPort)
const files = new Client(staticPort)
const webConsole = new Client(consolePort)
const secrets = {
  JWT_SECRET_FILE: randomBytes(32).toString('base64'),
  ADMIN_PASSWORD_FILE: randomBytes(15).toString('base64url'),
  METRICS_TOKEN_FILE: randomBytes(15).toString('base64url'),
}
const ports = {
  DOMAIN_SERVICE_PORT: `127.0.0.1:${domainPort}`,
  STATIC_SERVICE_PORT: `127.0.0.1:${staticPort}`,
  CONSOLE_PORT: `127.0.0.1:${consolePort}`,
}
const env = { ADMIN_USERNAME: 'boss', ...ports }

await tryDefaults(compose)
await tryOnSandbox(compose)
await tryOnRegistrar(compose)

// `docker compose up --build` of the README, without any setting but the ports.
async function tryDefaults(command: string[]) {
  await using stack = new Stack(command, {
    files: ['docker-compose.yml'],
    env: ports,
    secrets: {},
    keepsImages: true,
  })
  await step('the images are built', () => stack.compose('build').then(() => undefined))
  await step('all services become healthy', () => untilHealthy(stack))
  const logInAtBoth = await step('the log shows one password of admin', async () => {
    const log = await stack.compose('logs', '--no-color', 'domain-service', 'static-service')
    const found = [...log.matchAll(/admin[^\n]*password[^\n]*?([\w-]{16,})/gi)]
    assert.equal(found.length, 1, log)
    const password = found[0]?.[1] ?? ''
    return () => Promise.all([domains, files].map((client) => client.logIn('admin', password)))
  })
  await step('which logs in at both services', logInAtBoth)
  await step('a user that one command adds logs in at both services', async () => {
    const command = 'echo words of alice | users add alice --role viewer'
    await stack.compose('exec', '-T', 'domain-service', 'sh', '-c', command)
    for (const client of [domains, files]) await client.logIn('alice', 'words of alice')
    await logInAtBoth()
  })
  await step('the console serves its page and knows the services', async () => {
    const page = await webConsole.call('/')
    assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
    const { domain_service_url, static_service_url } = await webConsole.json('/config.json')
    assert.deepEqual([domain_service_url, static_service_url], ['http://127.0.0.1:3001', 'http://127.0.0.1:3002'])
  })
  await step('the profile `backup` backs both up', () => runBackups(stack))
  const stored = await seeFiles(files)
  await step('their data is lost, and restored', () => loseAndRestore(stack))
  await step('the password still logs in at both services', logInAtBoth)
  assert.deepEqual(await seeFiles(files), stored)
}

async function tryOnSandbox(command: string[]) {
  const overlays = ['docker-compose.yml', 'docker-compose.secrets.yml']
  await using stack = new Stack(command, { files: overlays, env, secrets, keepsImages: true })
  await step('all services become healthy with secrets from files', () => bringUp(stack))
  await step('images add little to their base', () => reportSizes(stack))
  await step('the containers are restricted', () => checkRestrictions(stack))
  await step('secrets come from files', () => checkSecrets(stack))
  await step('records: read, added, replaced, restored', () => useDomains(domains))
  await step('files: uploaded, listed, found, deleted', () => useFiles(files))
  const before = [await seeDomains(domains), await seeFiles(files)]
  await step('a backup is made while running, and restored', () => backUp(stack))

  await step('all exit gracefully, and cut no request', () => stop(stack))
  await step('they start again', () => bringUp(stack))
  await logIn()
  await step('nothing was lost', async () =>
    assert.deepEqual([await seeDomains(domains), await seeFiles(files)], before),
  )

  await step('all are killed, and start again', async () => {
    for (const container of (await stack.containers()).values()) await kill(container)
    await bringUp(stack)
  })
  await step('nothing was lost after the kill', async () =>
    assert.deepEqual([await seeDomains(domains), await seeFiles(files)], before),
  )

  await step('a file larger than the container memory is stored', () => uploadLarge(stack))
  await step('new containers use the existing volumes', async () => {
    await stack.compose('up', '--detach', '--force-recreate')
    await bringUp(stack)
    await files.json('/api/files/delete', { json: { paths: ['large.bin'], forget: true } })
    assert.deepEqual([await seeDomains(domains), await seeFiles(files)], before)
  })
}

// Nothing listens at this registrar address: the services must start without the sandbox.
async function tryOnRegistrar(command: string[]) {
  const overlays = ['docker-compose.yml', 'docker-compose.registrar.yml', 'docker-compose.secrets.yml']
  const account = {
    REGISTRAR_URL: 'http://127.0.0.1:9/xml.response',
    REGISTRAR_API_USER: 'somebody',
    REGISTRAR_CLIENT_IP: '127.0.0.1',
  }
  await using stack = new Stack(command, {
    files: overlays,
    env: { ...env, ...account },
    secrets: { ...secrets, REGISTRAR_API_KEY_FILE: 'the key of somebody' },
  })
  await step('with REGISTRAR_URL set there is no sandbox', async () => {
    await bringUp(stack)
    const containers = await stack.containers()
    assert.deepEqual([...containers.keys()], ['domain-service', 'static-service', 'console'])
    for (const { Config } of containers.values()) {
      assert.ok(Config.Env.includes('NODE_ENV=production'))
      assert.ok(!Config.Env.some((variable) => variable.includes('the key of somebody')))
    }
  })
  await step('calls go to REGISTRAR_URL', async () => {
    await logIn()
    const answer = await domains.json('/api/domains', { status: 502 })
    assert.equal(answer.code, 'registrar_unreachable')
  })
  await step('all exit gracefully, and cut no request', () => stop(stack))
}

async function bringUp(stack: Stack) {
  await untilHealthy(stack)
  await logIn()
}

async function untilHealthy(stack: Stack) {
  await stack.compose('up', '--detach')
  await until('all are healthy', async () => {
    const containers = [...(await stack.containers()).values()]
    return containers.every(({ State }) => State.Health?.Status === 'healthy') || undefined
  })
}

async function logIn() {
  for (const client of [domains, files]) await client.logIn('boss', secrets.ADMIN_PASSWORD_FILE)
}

async function reportSizes(stack: Stack): Promise<string> {
  const own = await sizeOf(base)
  const lines: string[] = []
  for (const [service, container] of await stack.containers()) {
    const added = (await sizeOf(container.Image)) - own
    assert.ok(added <= maxAddedBytes, `${service} adds ${added} bytes to its base`)
    lines.push(`${service} ${Math.round(added / 1e6)} MB`)
  }
  return lines.join(', ')
}

async function checkRestrictions(stack: Stack) {
  const published = {
    'domain-service': ['3001/tcp'],
    'static-service': ['3002/tcp'],
    console: ['3000/tcp'],
  }
  const mounted: Record<string, string[]> = { console: [], 'registrar-sandbox': ['/data'] }
  const containers = await stack.containers()
  assert.equal(containers.size, 4)
  for (const [service, container] of containers) {
    const { HostConfig, NetworkSettings, Mounts } = container
    const ports = Object.entries(NetworkSettings.Ports).filter(([, hosts]) => hosts?.length)
    const expected = Object.entries(published).find(([name]) => name === service)?.[1] ?? []
    assert.deepEqual(
      ports.map(([port]) => port),
      expected,
      `${service} publishes`,
    )
    assert.ok(HostConfig.ReadonlyRootfs && HostConfig.Memory > 0 && HostConfig.PidsLimit)
    assert.deepEqual(HostConfig.CapDrop, ['ALL'])
    assert.ok(HostConfig.SecurityOpt?.includes('no-new-privileges:true'))
    const volumes = Mounts.filter(({ Type }) => Type === 'volume')
    assert.deepEqual(
      volumes.map(({ Destination }) => Destination).sort(),
      mounted[service] ?? ['/backups', '/data', '/users'],
    )
    const isWritable = `try { fs.writeFileSync('/app/x', ''); true } catch (error) { error.code }`
    assert.equal(await stack.evaluate(container, isWritable), 'EROFS')
    assert.equal(await stack.evaluate(container, 'process.getuid()'), '1000')
    assert.equal(await stack.evaluate(container, `fs.statSync('/app/packages').uid`), '0')
  }
}

async function checkSecrets(stack: Stack) {
  for (const [service, { Config }] of await stack.containers()) {
    for (const secret of Object.values(secrets)) {
      const isTold = Config.Env.some((variable) => variable.includes(secret))
      assert.ok(!isTold, `the environment of ${service} tells a secret`)
    }
  }
  for (const client of [domains, files]) {
    const [head, claims, signature] = client.token.split('.')
    const expected = createHmac('sha256', secrets.JWT_SECRET_FILE).update(`${head}.${claims}`)
    assert.equal(signature, expected.digest('base64url'))
    const authorization = `Bearer ${secrets.METRICS_TOKEN_FILE}`
    await client.call('/metrics', { headers: { authorization } })
  }
}

async function runBackups(stack: Stack) {
  await useFiles(files)
  await stack.compose('--profile', 'backup', 'up', '--detach')
  await until('both are backed up', async () => {
    const list = ['exec', '-T', 'static-service', 'sh', '-c', 'ls /backups/*/snapshots || true']
    const listed = await stack.compose(...list)
    return listed.match(/^\d\S*Z$/gm)?.length === 2 || undefined
  })
}

async function loseAndRestore(stack: Stack) {
  await stack.compose('--profile', 'backup', 'down')
  await stack.removeVolumes('domains', 'files', 'users')
  for (const [service, part] of [
    ['domain-service', 'domain'],
    ['static-service', 'static'],
  ] as const) {
    const command = `packages/${service}/src/maintenance/data-command.ts`
    const restore = ['node', command, 'restore', `/backups/${part}`, '--verify']
    await stack.compose('run', '--rm', '-T', '--no-deps', service, ...restore)
  }
  await untilHealthy(stack)
}

// With the commands of docs/operations.md.
async function backUp(stack: Stack): Promise<string> {
  const lines: string[] = []
  for (const service of ['domain-service', 'static-service']) {
    const command = ['node', `packages/${service}/src/maintenance/data-command.ts`]
    const run = (...args: string[]) => stack.compose('exec', '-T', ...args)
    lines.push(await run(service, ...command, 'backup', '/data/backups/monday', '--verify'))
    const restored = ['-e', 'DATA_DIR=/data/restored', service, ...command]
    await run(...restored, 'restore', '/data/backups/monday', '--verify')
    await run(service, 'rm', '-r', '/data/backups', '/data/restored')
  }
  return lines.map((line) => line.trim()).join(' ')
}

// Compose would kill after 15 seconds, with another code. After ten seconds a service logs what it cuts, and exits.
async function stop(stack: Stack) {
  await stack.compose('stop')
  for (const [service, { State }] of await stack.containers()) {
    assert.deepEqual([State.Status, State.ExitCode, State.OOMKilled], ['exited', 0, false], service)
  }
  const log = await stack.compose('logs', '--no-color')
  assert.doesNotMatch(log, /stopped before all requests finished/)
}

async function uploadLarge(stack: Stack): Promise<string> {
  const container = (await stack.containers()).get('static-service')
  assert.ok(container)
  const size = container.HostConfig.Memory + 128 * mebibyte
  const { status, text } = await files.uploadZeros('large.bin', size)
  assert.equal(status, 201, text)
  const after = (await stack.containers()).get('static-service')
  assert.deepEqual([after?.Id, after?.State.OOMKilled], [container.Id, false])
  const part = { headers: { range: `bytes=${size - 1}-` }, status: 206 }
  await files.call('/static/large.bin', part)
  return `${size / mebibyte} MiB in a container of ${container.HostConfig.Memory / mebibyte} MiB`
}
