import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { reservePorts } from '../../support/ports.ts'
import { untilListening } from './until-listening.ts'

/** Proxies with an example in docs/proxy. */
export const kinds = ['nginx', 'caddy'] as const
export type Kind = (typeof kinds)[number]

interface Behind {
  domainPort: number
  staticPort: number
  /** Default: the static service, for tests without a console. */
  consolePort?: number
  /** DATA_DIR of the static service. */
  dataDir: string
  /** Without TLS, for tests on raw sockets: every host name is the static service. */
  isPlain?: boolean
}

/** A proxy running the example of docs/proxy with only addresses, paths and the certificate replaced. */
export interface Front extends AsyncDisposable {
  port: number
  /** CA certificate of the proxy, in PEM. */
  authority: string
}

export async function standBefore(kind: Kind, behind: Behind): Promise<Front> {
  const folder = mkdtempSync(join(tmpdir(), `${kind}-`))
  const ports = { plain: await reservePorts(), tls: await reservePorts() }
  const child = { nginx: runNginx, caddy: runCaddy }[kind]({ ...behind, folder, ports })
  const port = behind.isPlain ? ports.plain : ports.tls
  const ended = once(child, 'exit')
  await untilListening(port, child)
  const authority = readAuthority(kind, folder, behind.isPlain)
  return {
    port,
    authority: await authority,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

interface Place extends Behind {
  folder: string
  ports: { plain: number; tls: number }
}

const example = (name: string) => readFileSync(join(import.meta.dirname, '../../../docs/proxy', name), 'utf8')

// Throws if the example lacks the text to replace, so that example and test cannot diverge.
function change(text: string, changes: [from: string | RegExp, to: string][]): string {
  return changes.reduce((before, [from, to]) => {
    const after = before.replaceAll(from, to)
    if (after === before) throw new Error(`the example does not have ${from}`)
    return after
  }, text)
}

function runNginx({
  folder,
  ports,
  domainPort,
  staticPort,
  consolePort = staticPort,
  dataDir,
  isPlain,
}: Place): ChildProcess {
  const [certificate, key] = [join(folder, 'certificate.pem'), join(folder, 'key.pem')]
  const names = 'subjectAltName=DNS:*.example.com,DNS:example.com'
  execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=test',
      '-addext',
      names,
      '-keyout',
      key,
      '-out',
      certificate,
    ],
    { stdio: 'ignore' },
  )
  const buffers = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  const text = change(example('nginx.conf'), [
    ['user www-data;', userOf(isPlain)],
    ['/run/nginx.pid', join(folder, 'pid')],
    ['http {', `http { ${buffers.join(' ')}`],
    ['/var/log/nginx/access.log', join(folder, 'access.log')],
    ['/var/log/nginx/error.log', 'stderr'],
    ['127.0.0.1:3000', `127.0.0.1:${consolePort}`],
    ['127.0.0.1:3001', `127.0.0.1:${domainPort}`],
    ['127.0.0.1:3002', `127.0.0.1:${staticPort}`],
    ['/etc/ssl/certs/example.com.pem', certificate],
    ['/etc/ssl/private/example.com.key', key],
    ['/var/lib/static-service', dataDir],
    ['server_name files.example.com', `server_name files.example.com ${isPlain ? '~.' : ''}`],
    ['listen 80 ', `listen 127.0.0.1:${isPlain ? ports.tls : ports.plain} `],
    [/listen 443 ssl http2/g, `listen 127.0.0.1:${isPlain ? ports.plain : `${ports.tls} ssl http2`}`],
  ])
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, text)
  const args = ['-p', folder, '-e', 'stderr', '-c', file, '-g', 'daemon off;']
  return spawn('nginx', args, { stdio: ['ignore', 'ignore', 'pipe'] })
}

function runCaddy({
  folder,
  ports,
  domainPort,
  staticPort,
  consolePort = staticPort,
  dataDir,
  isPlain,
}: Place): ChildProcess {
  const settings = [
    'admin off',
    'default_bind 127.0.0.1',
    `http_port ${ports.plain}`,
    `https_port ${ports.tls}`,
    isPlain ? 'auto_https off' : 'local_certs',
    'skip_install_trust',
    `storage file_system ${folder}/storage`,
  ]
  const text = change(example('Caddyfile'), [
    ['127.0.0.1:3000', `127.0.0.1:${consolePort}`],
    ['127.0.0.1:3001', `127.0.0.1:${domainPort}`],
    ['127.0.0.1:3002', `127.0.0.1:${staticPort}`],
    ['/var/lib/static-service', dataDir],
    ...(isPlain ? plainNames : []),
  ])
  const file = join(folder, 'Caddyfile')
  writeFileSync(file, `{\n${settings.join('\n')}\n}\n${text}`)
  const args = ['run', '--config', file, '--adapter', 'caddyfile']
  const env = { PATH: process.env.PATH, HOME: folder }
  return spawn('caddy', args, { stdio: ['ignore', 'ignore', 'pipe'], env })
}

// Without root there is only one user. Table tests use directories that www-data cannot enter.
const userOf = (isPlain = false) => {
  if (process.getuid?.() !== 0) return ''
  return isPlain ? 'user root;' : 'user www-data www-data;'
}

// Without TLS every host name is the static service.
const plainNames: [RegExp, string][] = [[/^files\.example\.com \{/gm, 'http:// {']]

async function readAuthority(kind: Kind, folder: string, isPlain = false): Promise<string> {
  if (isPlain) return ''
  const name = { nginx: 'certificate.pem', caddy: 'storage/pki/authorities/local/root.crt' }[kind]
  return readFileSync(join(folder, name), 'utf8')
}
