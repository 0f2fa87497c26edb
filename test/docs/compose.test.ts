import { execFileSync } from 'node:child_process'
import { accessSync, constants, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { Settings as ConsoleSettings } from '../../packages/console/src/config.ts'
import { Settings as DomainSettings } from '../../packages/domain-service/src/config.ts'
import { Settings as StaticSettings } from '../../packages/static-service/src/config.ts'
import { root } from '../support/everything.ts'

const Service = z.looseObject({
  image: z.string().optional(),
  environment: z.record(z.string(), z.string()).default({}),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
  restart: z.string().optional(),
  volumes: z.array(z.string()).default([]),
  healthcheck: z.object({ test: z.array(z.string()).optional() }).optional(),
})
const Compose = z.looseObject({ services: z.record(z.string(), Service) })

const readCompose = (file: string) =>
  Compose.parse(parse(readFileSync(join(root, file), 'utf8'), { merge: true })).services

const consoleOnly = ['DOMAIN_SERVICE_URL', 'STATIC_SERVICE_URL']
const settingsOf: [RegExp, string[]][] = [
  [/^domain-service/, Object.keys(DomainSettings.shape)],
  [/^static-service/, Object.keys(StaticSettings.shape)],
  [/^console$/, Object.keys(ConsoleSettings.shape)],
]

test.each([
  'docker-compose.yml',
  'docker-compose.registrar.yml',
  'docker-compose.secrets.yml',
  'docker-compose.scale.yml',
])('%s sets only settings that exist', (file) => {
  for (const [name, { environment }] of Object.entries(readCompose(file))) {
    const known = settingsOf.find(([pattern]) => pattern.test(name))?.[1]
    if (!known) continue
    const unknown = Object.keys(environment).filter(
      (setting) => !known.includes(setting) && !known.includes(setting.replace(/_FILE$/, '')),
    )
    expect([name, unknown]).toEqual([name, []])
  }
})

// Set by the image, by the file itself, or of the other form.
const fixed = ['HOST', 'PORT', 'DATA_DIR']
const ofReplicas = /^(?:DATABASE|S3|AWS)_|^GARBAGE_GRACE_S$/
const ofOneMachine = ['USERS_FILE', 'AWS_SESSION_TOKEN']

test.each([
  ['docker-compose.yml', (setting: string) => ofReplicas.test(setting)],
  ['docker-compose.scale.yml', (setting: string) => ofOneMachine.includes(setting)],
])('%s passes on every setting of its services', (file, isLeftOut) => {
  const missing = Object.entries(readCompose(file)).flatMap(([name, { environment }]) => {
    const known = settingsOf.find(([pattern]) => pattern.test(name))?.[1] ?? []
    const of = name === 'console' ? ['LOG_LEVEL', 'TRUST_PROXY', ...consoleOnly] : known
    return of
      .filter((setting) => !fixed.includes(setting) && !isLeftOut(setting))
      .filter((setting) => !(setting in environment))
      .map((setting) => `${name}: ${setting}`)
  })

  expect(missing).toEqual([])
})

test.each(['domain-service', 'static-service', 'backup-domain', 'backup-static'])(
  'docker-compose.yml gives %s the one users file, on a volume',
  (name) => {
    const { environment, volumes } = readCompose('docker-compose.yml')[name] ?? {}

    expect(environment?.USERS_FILE).toBe(`\${USERS_FILE:-/users/users.json}`)
    expect(volumes).toContain('users:/users')
  },
)

test.each(['users', 'trusts'])('the command %s of the images manages them', (name) => {
  const script = join(root, 'scripts/container', name)
  const [, program = ''] = /^exec node \/app\/(\S+) "\$@"$/m.exec(readFileSync(script, 'utf8')) ?? []

  accessSync(script, constants.X_OK)
  const help = execFileSync(process.execPath, [join(root, program), '--help'], { encoding: 'utf8' })
  expect(help).toMatch(new RegExp(`^Manages (?:the )?${name}\\b`))
})

test.each([
  ['docker-compose.registrar.yml', ['REGISTRAR_API_USER', 'REGISTRAR_CLIENT_IP', 'REGISTRAR_URL']],
  ['docker-compose.scale.yml', ['JWT_SECRET', 'POSTGRES_PASSWORD', 'S3_SECRET']],
])('%s refuses a start without %j', (file, required) => {
  const text = readFileSync(join(root, file), 'utf8')
  const mentions = [...text.matchAll(/\$\{(\w+):(.)/g)]
  const named = mentions.filter(([, name = '']) => required.includes(name))

  expect([...new Set(named.map(([, name]) => name))].sort()).toEqual(required)
  expect(named.filter(([, , sign]) => sign !== '?')).toEqual([])
})

test.each(['domain-service', 'static-service'])('the overlays of %s are for production', (name) => {
  const onRegistrar = readCompose('docker-compose.registrar.yml')[name]
  const withSecrets = readCompose('docker-compose.secrets.yml')[name]

  expect(onRegistrar?.environment.NODE_ENV).toBe(`\${NODE_ENV:-production}`)
  expect(withSecrets?.environment).toEqual({
    ADMIN_PASSWORD_FILE: '/run/secrets/admin_password',
    JWT_SECRET_FILE: '/run/secrets/jwt_secret',
    METRICS_TOKEN_FILE: '/run/secrets/metrics_token',
    OIDC_CLIENT_SECRET_FILE: '/run/secrets/oidc_client_secret',
  })
})

// A replica ends if the database is away for long when it starts.
test('docker-compose.scale.yml restarts what ends', () => {
  for (const [name, { restart }] of Object.entries(readCompose('docker-compose.scale.yml'))) {
    expect([name, restart]).toEqual([name, 'unless-stopped'])
  }
})

test('docker-compose.scale.yml runs two replicas of each service on PostgreSQL and S3', () => {
  const services = readCompose('docker-compose.scale.yml')

  for (const replica of ['domain-service-1', 'domain-service-2']) {
    expect(services[replica]?.environment).toHaveProperty('DATABASE_URL')
  }
  for (const replica of ['static-service-1', 'static-service-2']) {
    expect(services[replica]?.environment).toMatchObject({
      DATABASE_URL: expect.any(String),
      S3_BUCKET: expect.any(String),
    })
  }
  expect(services.postgres?.healthcheck).toBeDefined()
  expect(services.s3?.healthcheck).toBeDefined()
})

test('nginx of docker-compose.scale.yml knows all replicas, and waits until they are healthy', () => {
  const services = readCompose('docker-compose.scale.yml')
  const replicas = Object.keys(services).filter((name) => /^(?:domain|static)-service-\d$/.test(name))
  const configuration = readFileSync(join(root, 'docs/scaling/nginx.conf'), 'utf8')

  const upstreams = [...configuration.matchAll(/server ([a-z0-9-]+):\d+/g)].map(([, name]) => name)

  expect(replicas).toHaveLength(4)
  expect(upstreams.sort()).toEqual([...replicas, 'console'].sort())
  expect(Object.entries(services.nginx?.depends_on ?? {}).sort()).toEqual(
    [...replicas, 'console'].sort().map((name) => [name, { condition: 'service_healthy' }]),
  )
})
