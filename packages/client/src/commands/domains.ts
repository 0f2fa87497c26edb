import { readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { DomainClient, type RecordType } from '../domain-client.ts'
import { unwrap } from '../unwrap.ts'
import { readCredentials } from './credentials.ts'
import { type EventFlags, printEvents } from './events.ts'
import { logIn } from './sso-login.ts'
import { formatTable, runCommand, UsageError } from './terminal.ts'
import {
  applyZones,
  cellsOf,
  domainPages,
  planZones,
  pullZones,
  type RecordRow,
} from './zone-folder.ts'

const usage = `DNS records through the domain service.

  domains login --sso                                     log in by single sign-on, in a browser
  domains list [search]                                   list domains
  domains show <domain>                                   list its records
  domains add <domain> <type> <name> <address> [--ttl n] [--mx-pref n] [--dry-run]
  domains remove <domain> <record id> [--dry-run]         the id as shown by \`show\`
  domains history <domain>                                who changed what
  domains revert <domain> <change id> [--dry-run]         take back one change
  domains proposals                                       what waits for an approval
  domains approve <change id>                             let a proposed change be carried out
  domains reject <change id> [--reason text]
  domains events [--follow] [--types t,…] [--after id]    print what has happened, one JSON object a line; with --follow
                                                          what happens from now on, through breaks of the connection
  domains export <domain>                                 print the zone file
  domains import <domain> <file> [--dry-run]              replace the zone by a zone file
  domains pull <folder>                                   write a zone file for each domain: example.com.zone
  domains plan <folder>                                   show what \`apply\` would change; exits with 2 if anything
  domains apply <folder>                                  make the zones what the files of the folder say

A user whose writes have to be approved proposes: these commands then print the number of the change.

DOMAINS_URL (http://127.0.0.1:3001), DOMAINS_TOKEN, or DOMAINS_USERNAME and DOMAINS_PASSWORD.
None of them after login --sso, and in GitHub and GitLab jobs that a trust admits.
`

interface Flags extends EventFlags {
  ttl: number | undefined
  mxPref: number | undefined
  dryRun: boolean
  reason?: string
}

const commands = {
  list,
  show,
  add,
  remove,
  history,
  revert,
  proposals,
  approve,
  reject,
  events: ({ api }: DomainClient, _: string[], flags: Flags) =>
    printEvents((options) => api.GET('/api/events', options), flags),
  export: exportZone,
  import: importZone,
  pull: onFolder(pullZones),
  plan: onFolder(planZones),
  apply: onFolder(applyZones),
}

function onFolder(command: (client: DomainClient, folder: string) => Promise<void>) {
  return (client: DomainClient, [folder]: string[]) => command(client, need(folder, 'a folder'))
}

function readInteger(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`${option} takes a whole number.`)
  return Number(text)
}

function need(value: string | undefined, what: string): string {
  if (value) return value
  throw new UsageError(`Name ${what}.`)
}

const readType = (text: string) => text.toUpperCase() as RecordType // The service names its types.

async function list(client: DomainClient, [search]: string[]) {
  for await (const domains of domainPages(client, search)) {
    const rows = domains.map(({ name, expires_on }) => [name, `expires ${expires_on ?? 'unknown'}`])
    process.stdout.write(formatTable(rows))
  }
}

/** Prints the result of a write, or the number of the change where it has to be approved. */
async function write<Data extends object>(
  result: Promise<{ data?: Data; error?: unknown; response: Response }>,
  print: (data: Exclude<Data, { status: unknown }>) => void,
) {
  const data = await unwrap(result)
  // Only a change that waits has a status, and these commands do not send `Prefer: respond-async`.
  if (!('status' in data)) return print(data as Exclude<Data, { status: unknown }>)
  const { id } = data as unknown as { id: number } // The schema of every 202.
  process.stdout.write(`Proposed as change ${id}: another person can approve it.\n`)
}

type IdentifiedRow = RecordRow & { id: string }

const toRow = (record: IdentifiedRow) => [record.id, ...cellsOf(record)]

async function show({ api }: DomainClient, [name]: string[]) {
  const domain = need(name, 'a domain')
  const zone = await unwrap(
    api.GET('/api/domains/{domain}/dns/hosts', { params: { path: { domain } } }),
  )
  process.stdout.write(formatTable(zone.hosts.map(toRow)))
}

async function add({ api }: DomainClient, args: string[], { ttl, mxPref, dryRun }: Flags) {
  const domain = need(args[0], 'a domain')
  const record = readType(need(args[1], 'a record type'))
  const result = api.POST('/api/domains/{domain}/dns/hosts/{record}', {
    params: { path: { domain, record }, query: { dry_run: dryRun } },
    body: {
      name: need(args[2], 'a host name'),
      address: need(args[3], 'an address'),
      ...(ttl === undefined ? {} : { ttl }),
      ...(mxPref === undefined ? {} : { mx_pref: mxPref }),
    },
  })
  await write(result, (added) => {
    process.stdout.write(formatTable([[dryRun ? 'would add' : 'added', ...toRow(added)]]))
    for (const warning of added.warnings ?? []) process.stderr.write(`Warning: ${warning}\n`)
  })
}

interface ZoneChange {
  changes: { added: IdentifiedRow[]; removed: IdentifiedRow[] }
  warnings?: string[]
}

function printChange({ changes, warnings = [] }: ZoneChange) {
  const rows = [
    ...changes.removed.map((record) => ['-', ...toRow(record)]),
    ...changes.added.map((record) => ['+', ...toRow(record)]),
  ]
  process.stdout.write(rows.length > 0 ? formatTable(rows) : 'No change.\n')
  for (const warning of warnings) process.stderr.write(`Warning: ${warning}\n`)
}

async function remove({ api }: DomainClient, args: string[], { dryRun }: Flags) {
  const path = { domain: need(args[0], 'a domain'), record: need(args[1], 'a record id') }
  const query = { dry_run: dryRun }
  await write(
    api.DELETE('/api/domains/{domain}/dns/hosts/{record}', { params: { path, query } }),
    printChange,
  )
}

async function history({ api }: DomainClient, [name]: string[]) {
  const path = { domain: need(name, 'a domain') }
  const { history: entries } = await unwrap(
    api.GET('/api/domains/{domain}/dns/history', { params: { path, query: { page_size: 50 } } }),
  )
  const describe = (records: RecordRow[], sign: string) =>
    records.map((record) => `${sign}${record.name} ${record.type}`)
  const rows = entries.map(({ id, at, by, status, changes }) => [
    id,
    at,
    by ?? 'outside',
    status,
    [...describe(changes.removed, '-'), ...describe(changes.added, '+')].join(', '),
  ])
  process.stdout.write(formatTable(rows))
}

async function revert({ api }: DomainClient, args: string[], { dryRun }: Flags) {
  const id = readInteger('A change id', need(args[1], 'a change id')) ?? 0
  const path = { domain: need(args[0], 'a domain'), id }
  await write(
    api.POST('/api/domains/{domain}/dns/history/{id}/revert', {
      params: { path, query: { dry_run: dryRun } },
    }),
    printChange,
  )
}

async function proposals({ api }: DomainClient) {
  const query = { status: 'proposed' as const, page_size: 200 }
  const { changes } = await unwrap(api.GET('/api/changes', { params: { query } }))
  for (const { id, at, by, domain, changes: made } of changes) {
    process.stdout.write(`${id}  ${domain}  ${by}  ${at}\n`)
    printChange({ changes: made ?? { added: [], removed: [] } })
  }
}

async function approve({ api }: DomainClient, [text]: string[]) {
  const id = readInteger('A change id', need(text, 'a change id')) ?? 0
  const approved = await unwrap(api.POST('/api/changes/{id}/approve', { params: { path: { id } } }))
  process.stdout.write(`Change ${id} of ${approved.domain} is ${approved.status}.\n`)
}

async function reject({ api }: DomainClient, [text]: string[], { reason }: Flags) {
  const id = readInteger('A change id', need(text, 'a change id')) ?? 0
  const body = reason === undefined ? {} : { reason }
  const path = { id }
  await unwrap(api.POST('/api/changes/{id}/reject', { params: { path }, body }))
  process.stdout.write(`Change ${id} is rejected.\n`)
}

async function exportZone({ api }: DomainClient, [name]: string[]) {
  const path = { domain: need(name, 'a domain') }
  const text = await unwrap(
    api.GET('/api/domains/{domain}/dns/zonefile', { params: { path }, parseAs: 'text' }),
  )
  process.stdout.write(String(text))
}

async function importZone({ api }: DomainClient, args: string[], { dryRun }: Flags) {
  const path = { domain: need(args[0], 'a domain') }
  const body = await readFile(need(args[1], 'a zone file'), 'utf8')
  await write(
    api.PUT('/api/domains/{domain}/dns/zonefile', {
      params: { path, query: { dry_run: dryRun } },
      body,
      bodySerializer: (text) => text,
      headers: { 'content-type': 'text/dns' },
    }),
    printChange,
  )
}

await runCommand(usage, async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      ttl: { type: 'string' },
      'mx-pref': { type: 'string' },
      'dry-run': { type: 'boolean', default: false },
      sso: { type: 'boolean', default: false },
      reason: { type: 'string' },
      follow: { type: 'boolean', default: false },
      types: { type: 'string' },
      after: { type: 'string' },
    },
  })
  const [name = '', ...args] = positionals
  const baseUrl = process.env.DOMAINS_URL || 'http://127.0.0.1:3001'
  const service = { prefix: 'DOMAINS', baseUrl }
  if (name === 'login') return logIn(service, values.sso)
  const command = Object.hasOwn(commands, name)
    ? commands[name as keyof typeof commands]
    : undefined
  if (!command) throw new UsageError(name ? `Unknown command: ${name}` : 'Name a command.')
  const flags = {
    ...values,
    ttl: readInteger('--ttl', values.ttl),
    mxPref: readInteger('--mx-pref', values['mx-pref']),
    dryRun: values['dry-run'],
  }
  const client = new DomainClient({ baseUrl, credentials: await readCredentials(service) })
  await command(client, args, flags)
})
