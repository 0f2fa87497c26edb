import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { DomainClient, type RecordType } from '../domain-client.ts'
import { unwrap } from '../responses.ts'
import { eventOptions, printEvents } from './events.ts'
import { type Command, readInteger, runProgram } from './run-program.ts'
import { formatTable } from './terminal.ts'
import * as zones from './zone-folder.ts'

const usage = `DNS records through the domain service.

  domains login --sso                                     log in by single sign-on, in a browser
  domains list [search]                                   list domains
  domains show <domain>                                   list its records
  domains add <domain> <record type> <host name> <address> [--ttl n] [--mx-pref n] [--dry-run]
  domains remove <domain> <record id> [--dry-run]         the id as shown by \`show\`
  domains history <domain>                                who changed what
  domains revert <domain> <change id> [--dry-run]         take back one change
  domains proposals                                       what waits for an approval
  domains approve <change id>                             approve a proposed change
  domains reject <change id> [--reason text]
  domains events [--follow] [--types t,…] [--after id]    print past events, one JSON object a line; with --follow
                                                          future ones, across lost connections
  domains export <domain>                                 print the zone file
  domains import <domain> <zone file> [--dry-run]         replace the zone by a zone file
  domains pull <folder>                                   write a zone file for each domain with records: example.com.zone
  domains plan <folder>                                   show what \`apply\` would change
  domains apply <folder>                                  make the zones what the zone files say

If your writes need an approval, these commands print the number of the proposed change.

DOMAINS_URL (http://127.0.0.1:3001), DOMAINS_TOKEN, or DOMAINS_USERNAME and DOMAINS_PASSWORD.
None of them is needed after login --sso, or in GitHub and GitLab jobs that a trust admits.
Exit status: 0 done, 1 failed or wrong arguments; 2: \`plan\` shows changes.
`

const options = {
  sso: { type: 'boolean' },
  ttl: { type: 'string' },
  'mx-pref': { type: 'string' },
  'dry-run': { type: 'boolean', default: false },
  reason: { type: 'string' },
  ...eventOptions,
} as const

type DomainCommand = Command<DomainClient, typeof options>

const list: DomainCommand = async (client, [search]) => {
  for await (const domains of zones.domainPages(client, search)) {
    const rows = domains.map(({ name, expires_on }) => [name, `expires ${expires_on ?? 'unknown'}`])
    process.stdout.write(formatTable(rows))
  }
}

/** Prints the result of a write, or the number of the change if it needs approval. */
async function write<Data extends object>(
  result: Promise<{ data?: Data; error?: unknown; response: Response }>,
  print: (data: Exclude<Data, { status: unknown }>) => void,
) {
  const data = await unwrap(result)
  // Only an unfinished change has `status`. Without `Prefer: respond-async`, that is a proposal.
  if (!('status' in data)) return print(data as Exclude<Data, { status: unknown }>)
  const { id } = data as unknown as { id: number } // As in the schema of every 202.
  process.stdout.write(`Proposed as change ${id}: another person can approve it.\n`)
}

/** Lets a POST be repeated while the registrar is busy, and after a lost connection. */
const onlyOnce = () => ({ 'idempotency-key': randomUUID() })

type IdentifiedRow = zones.RecordRow & { id: string }

const toRow = (record: IdentifiedRow) => [record.id, ...zones.cellsOf(record)]

const show: DomainCommand = async ({ api }, [domain = '']) => {
  const zone = await unwrap(api.GET('/api/domains/{domain}/dns/hosts', { params: { path: { domain } } }))
  process.stdout.write(formatTable(zone.hosts.map(toRow)))
}

const add: DomainCommand = async ({ api }, words, flags) => {
  const [domain = '', type = '', name = '', address = ''] = words
  const { ttl, 'mx-pref': preference, 'dry-run': dryRun } = flags
  const record = type.toUpperCase() as RecordType // The service rejects unknown types.
  const result = api.POST('/api/domains/{domain}/dns/hosts/{record}', {
    params: { path: { domain, record }, query: { dry_run: dryRun }, header: onlyOnce() },
    body: {
      name,
      address,
      ...(ttl && { ttl: readInteger('--ttl', ttl) }),
      ...(preference && { mx_pref: readInteger('--mx-pref', preference) }),
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

const remove: DomainCommand = async ({ api }, [domain = '', record = ''], flags) => {
  const params = { path: { domain, record }, query: { dry_run: flags['dry-run'] } }
  await write(api.DELETE('/api/domains/{domain}/dns/hosts/{record}', { params }), printChange)
}

const history: DomainCommand = async ({ api }, [domain = '']) => {
  const path = { domain }
  const { history: entries } = await unwrap(
    api.GET('/api/domains/{domain}/dns/history', { params: { path, query: { page_size: 50 } } }),
  )
  const describe = (records: zones.RecordRow[], sign: string) =>
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

const revert: DomainCommand = async ({ api }, [domain = '', change = ''], flags) => {
  const path = { domain, id: readInteger('A change id', change) }
  const params = { path, query: { dry_run: flags['dry-run'] }, header: onlyOnce() }
  await write(api.POST('/api/domains/{domain}/dns/history/{id}/revert', { params }), printChange)
}

const proposals: DomainCommand = async ({ api }) => {
  const query = { status: 'proposed' as const, page_size: 200 }
  const { changes } = await unwrap(api.GET('/api/changes', { params: { query } }))
  for (const { id, at, by, domain, changes: made } of changes) {
    process.stdout.write(`${id}  ${domain}  ${by}  ${at}\n`)
    printChange({ changes: made ?? { added: [], removed: [] } })
  }
}

const approve: DomainCommand = async ({ api }, [change = '']) => {
  const id = readInteger('A change id', change)
  const approved = await unwrap(api.POST('/api/changes/{id}/approve', { params: { path: { id } } }))
  process.stdout.write(`Change ${id} of ${approved.domain} is ${approved.status}.\n`)
}

const reject: DomainCommand = async ({ api }, [change = ''], { reason }) => {
  const id = readInteger('A change id', change)
  const body = reason === undefined ? {} : { reason }
  await unwrap(api.POST('/api/changes/{id}/reject', { params: { path: { id } }, body }))
  process.stdout.write(`Change ${id} is rejected.\n`)
}

const importZone: DomainCommand = async ({ api }, [domain = '', file = ''], flags) => {
  const text = await readFile(file, 'utf8')
  await write(zones.putZoneFile(api, { domain, text }, { dry_run: flags['dry-run'] }), printChange)
}

await runProgram('domains', {
  usage,
  port: 3001,
  options,
  open: (settings) => new DomainClient(settings),
  commands: {
    list,
    show,
    add,
    remove,
    history,
    revert,
    proposals,
    approve,
    reject,
    events: ({ api }, _, flags) => printEvents((query) => api.GET('/api/events', query), flags),
    export: async ({ api }, [domain = '']) => void process.stdout.write(await zones.readZoneFile(api, domain)),
    import: importZone,
    pull: zones.pullZones,
    plan: zones.planZones,
    apply: zones.applyZones,
  },
})
