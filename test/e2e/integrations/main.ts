import assert from 'node:assert/strict'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { step } from '../support/step.ts'
import { type AcmeServer, startAcmeServer } from './acme-server.ts'
import { type DnsService, startDnsService } from './dns-service.ts'
import { expectNames, type Order, runLego } from './lego.ts'
import { runProgram } from './program.ts'
import { startRegistrarFront } from './registrar-front.ts'

// Real clients, as docs/integrations.md configures them, through the domain service to the sandbox.

const domain = 'example.com'
const folder = await mkdtemp(join(tmpdir(), 'integrations-'))
try {
  await using acme = await startAcmeServer(folder)
  await using dns = await startDnsService({ folder, domains: [domain], onWrite: acme.publish })
  await tryAcme(acme, dns)
  await tryRegistrarProtocol(acme, dns)
  await tryDynamicDns(dns)
} finally {
  await rm(folder, { recursive: true, force: true })
}

async function tryAcme(acme: AcmeServer, dns: DnsService) {
  const records = ['_acme-challenge', '_acme-challenge.*'].map((name) => ({ name, types: ['TXT'] }))
  const token = await dns.createToken({ records })
  const before = dns.records(domain)
  const obtain = (names: string[]) => runLego({ folder, acme, url: dns.url, token, names })

  await step('lego: a certificate for a name', () => obtain([`www.${domain}`]))
  await freshQuota()
  await step('lego: apex and wildcard together', () => obtain([domain, `*.${domain}`]))
  await freshQuota()
  await step('lego: twenty certificates at once', async () => {
    const names = Array.from({ length: 20 }, (_, n) => `host${n}.${domain}`)
    await Promise.all(names.map((name) => obtain([name])))
  })
  await freshQuota()
  await step('certbot with the hooks of docs/integrations.md: apex and wildcard', () =>
    runCertbot({ folder, acme, url: dns.url, token, names: [domain, `*.${domain}`] }),
  )
  await step('the zone is as before', async () => assert.deepEqual(dns.records(domain), before))
}

// Twice, since what the first run left must not keep the second from removing its challenges.
async function tryRegistrarProtocol(acme: AcmeServer, dns: DnsService) {
  await using front = await startRegistrarFront(folder, dns.url)
  const token = await dns.createToken({ role: 'editor', domains: [domain] })
  const before = dns.records(domain)
  await step("lexicon by the registrar's protocol: a record added and removed", async () => {
    const lexicon = (action: string, ...args: string[]) =>
      runProgram({
        command: 'lexicon',
        args: ['namecheap', action, domain, 'TXT', '--name', 'lexicon', ...args],
        env: {
          ...front.env,
          LEXICON_NAMECHEAP_USERNAME: 'any',
          LEXICON_NAMECHEAP_TOKEN: token,
          TLDEXTRACT_CACHE: join(folder, 'tldextract'),
        },
      })
    const content = 'a "value" & more'
    await lexicon('create', '--content', content)
    const after = [...before, `lexicon TXT ${content}`]
    assert.deepEqual(dns.records(domain).toSorted(), after.toSorted())
    await lexicon('delete', '--content', content)
    assert.deepEqual(dns.records(domain), before)
  })
  await step("lego by the registrar's protocol: ten certificates at once", async () => {
    const names = Array.from({ length: 10 }, (_, n) => `host${n}.${domain}`)
    await Promise.all(names.map((name) => runLego({ folder, acme, url: dns.url, token, names: [name], front })))
    assert.deepEqual(dns.records(domain), before)
  })
  for (const names of [[`www.${domain}`], [`mail.${domain}`, `*.web.${domain}`], [domain, `*.${domain}`]]) {
    await freshQuota()
    await step(`lego by the registrar's protocol: ${names.join(' and ')}`, async () => {
      await runLego({ folder, acme, url: dns.url, token, names, front })
      assert.deepEqual(dns.records(domain), before)
    })
  }
}

// At the registrar's real pace a certificate takes up to twelve calls of twenty.
async function freshQuota() {
  if (process.env.REGISTRAR_RATE) await setTimeout(61_000)
}

async function runCertbot({ acme, url, token, names }: Order) {
  const path = join(folder, 'certbot')
  await mkdir(path)
  const tokenFile = join(path, 'dns-token')
  await writeFile(tokenFile, token, { mode: 0o600 })
  const [present = '', cleanup = ''] = await hooksOfDocs(path, tokenFile)
  const directories = ['config', 'work', 'logs'].flatMap((name) => [`--${name}-dir`, join(path, name)])
  await runProgram({
    command: 'certbot',
    args: [
      ...['certonly', '--manual', '--preferred-challenges', 'dns', '--non-interactive'],
      ...['--manual-auth-hook', present, '--manual-cleanup-hook', cleanup],
      ...['--agree-tos', '--email', 'you@example.com', '--server', acme.directory, ...directories],
      ...names.flatMap((name) => ['-d', name]),
    ],
    env: { REQUESTS_CA_BUNDLE: acme.certificate, DNS_SERVICE: url, DNS_WAIT: '0' },
  })
  await expectNames(join(path, 'config/live', domain, 'cert.pem'), names)
}

// Only the place of the token differs.
async function hooksOfDocs(path: string, tokenFile: string): Promise<string[]> {
  const docs = join(import.meta.dirname, '../../../docs/integrations.md')
  const text = await readFile(docs, 'utf8')
  const hooks = [...text.matchAll(/```bash\n(#!\/bin\/sh\n.*?)```/gs)].map(([, hook = '']) => hook)
  assert.equal(hooks.length, 2)
  return Promise.all(
    hooks.map(async (hook, index) => {
      const file = join(path, `hook${index}`)
      await writeFile(file, hook.replace('/etc/letsencrypt/dns-token', tokenFile))
      await chmod(file, 0o755)
      return file
    }),
  )
}

async function tryDynamicDns(dns: DnsService) {
  const token = await dns.createToken({ records: [{ name: 'home', types: ['A', 'AAAA'] }] })
  const addressOfHome = () => dns.records(domain).filter((record) => record.startsWith('home '))
  const clients = { ddclient: runDdclient, inadyn: runInadyn }
  for (const [name, run] of Object.entries(clients)) {
    await freshQuota()
    for (const address of ['192.0.2.55', '192.0.2.66']) {
      await step(`${name}: the address ${address}`, async () => {
        await run({ dns, token, address })
        assert.deepEqual(addressOfHome(), [`home A ${address}`])
      })
    }
  }
}

interface AddressUpdate {
  dns: DnsService
  token: string
  address: string
}

async function runDdclient({ dns, token, address }: AddressUpdate) {
  const path = await mkdtemp(join(folder, 'ddclient-'))
  const file = join(path, 'ddclient.conf')
  const lines = [
    ...['use=ip', `ip=${address}`, 'protocol=dyndns2', 'ssl=no', `server=127.0.0.1:${dns.port}`],
    ...['login=any', `password=${token}`, `home.${domain}`, ''],
  ]
  await writeFile(file, lines.join('\n'), { mode: 0o600 })
  const printed = await runProgram({
    command: 'ddclient',
    args: ['-daemon=0', '-noquiet', '-verbose', '-file', file, '-cache', join(path, 'cache')],
  })
  assert.match(printed, /SUCCESS|good/)
}

async function runInadyn({ dns, token, address }: AddressUpdate) {
  const path = await mkdtemp(join(folder, 'inadyn-'))
  const file = join(path, 'inadyn.conf')
  const settings = [
    'ssl = false',
    'username = any',
    `password = ${token}`,
    `ddns-server = 127.0.0.1:${dns.port}`,
    'ddns-path = "/nic/update?hostname=%h&myip=%i"',
    `hostname = home.${domain}`,
    `checkip-command = "echo ${address}"`,
  ]
  const text = `allow-ipv6 = true\ncustom dns.example {\n  ${settings.join('\n  ')}\n}\n`
  await writeFile(file, text, { mode: 0o600 })
  await runProgram({
    command: 'inadyn',
    args: ['--once', '--foreground', '--no-pidfile', '--force', '--config', file, '--cache-dir', path],
  })
}
