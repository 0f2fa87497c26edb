import { z } from 'zod'
import {
  type CommandLine,
  command,
  describeRows,
  openStores,
  type Program,
  readService,
  runProgram,
  type Stores,
  UsageError,
} from '../command-line.ts'
import { callerOfUser } from '../rights.ts'
import { NewToken } from './api-tokens.ts'
import { describeToken } from './token-routes.ts'

const help = `Manages the API tokens of a service.

  tokens add <domain|static> <name> --owner <user> [--expires <days|never>] [--role <viewer|editor|admin>]
         [--domains example.com,*.co.uk] [--folders docs/,site/] [--record _acme-challenge:TXT ...]
         [--networks 192.0.2.0/24,...] [--writes propose]
         [--for registrar [--url https://dns.example] [--replace]]
  tokens list <domain|static> [--owner <user>]
  tokens remove <domain|static> <id>

A token without --role only reads; one with --record, which may be repeated, reads and writes these records only (*
stands for one or more labels).
--for registrar prints the settings of tools that know only the registrar's XML API, which the domain service at --url
speaks. Such a token is an editor unless --role or --record says otherwise; with --replace it may write a zone that it
has not read. More is in docs/users.md.
Exit status: 0 success, 1 failure, 2 usage error.
`

const AddedToken = NewToken.extend({
  owner: z.string(),
  for: z.literal('registrar').optional(),
  url: z.string().default('https://dns.example'),
})

const commands = {
  add: command(['service', 'name'], AddedToken, addToken),
  list: command(
    ['service'],
    z.strictObject({ owner: z.string().optional() }),
    async ({ apiTokens }: Stores, { owner }) => describeRows((await apiTokens.list(owner)).map(describeToken)),
  ),
  remove: command(['service', 'id'], z.strictObject({ id: z.string() }), async ({ apiTokens }: Stores, { id }) => {
    await apiTokens.remove(id)
    return `Revoked ${id}\n`
  }),
}

const open: Program<Stores>['open'] = async (given, env) => openStores(readService(given.service), env, given)

export const manageTokens = (args: string[], line: CommandLine) =>
  runProgram({ name: 'tokens', help, commands, open }, args, line)

async function addToken(
  { apiTokens, find, service }: Stores,
  { owner, for: tool, url, ...request }: z.infer<typeof AddedToken>,
) {
  const user = await find(owner)
  if (!user) throw new UsageError('--owner must name a user')
  if (tool && service !== 'domain-service') throw new UsageError('--for registrar needs the service domain')
  if (tool && !request.records) request.role ??= 'editor'
  const { text } = await apiTokens.create(callerOfUser(user), request)
  if (!tool) return `${text}\n`
  const address = `${url.replace(/\/$/, '')}/integrations/registrar/xml.response`
  return `${text}\n\n${registrarSettings.replaceAll('TOKEN', text).replaceAll('ADDRESS', address)}`
}

const registrarSettings = `DNSControl, creds.json:
  {"shared":{"TYPE":"NAMECHEAP","apiuser":"any","apikey":"TOKEN","BaseURL":"ADDRESS"}}

Caddy with the plug-in namecheap:
  tls {
    dns namecheap {
      user any
      api_key TOKEN
      client_ip 127.0.0.1
      endpoint ADDRESS
    }
  }

Scripts:
  curl --data-urlencode "ApiKey=TOKEN" --data "ApiUser=any&UserName=any&ClientIp=127.0.0.1" \\
    --data "Command=namecheap.domains.dns.getHosts&SLD=example&TLD=com" ADDRESS

These have no setting for the address: they need a TLS front for api.namecheap.com that leads to
ADDRESS (see docs/integrations.md).

Terraform:
  provider "namecheap" {
    user_name = "any"
    api_user  = "any"
    api_key   = "TOKEN"
    client_ip = "127.0.0.1"
  }

lego:
  NAMECHEAP_API_USER=any NAMECHEAP_API_KEY=TOKEN lego --dns namecheap ...

acme.sh:
  NAMECHEAP_USERNAME=any NAMECHEAP_API_KEY=TOKEN NAMECHEAP_SOURCEIP=127.0.0.1 acme.sh --dns dns_namecheap ...

certbot with the plug-in certbot-dns-namecheap, credentials file:
  dns_namecheap_username = any
  dns_namecheap_api_key = TOKEN
`

if (import.meta.main) process.exitCode = await manageTokens(process.argv.slice(2), process)
