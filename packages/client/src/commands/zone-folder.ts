import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DomainClient } from '../domain-client.ts'
import { ProblemError, unwrap } from '../responses.ts'
import { CommandError, formatTable, makeDirectory } from './terminal.ts'

// Zones as files of a folder, one for each domain, named `example.com.zone`.

export interface RecordRow {
  name: string
  type: string
  address: string
  ttl: number
  mx_pref?: number | undefined
}

export const cellsOf = ({ name, type, ttl, address, mx_pref }: RecordRow) => [
  name,
  type,
  ttl,
  mx_pref === undefined ? address : `${mx_pref} ${address}`,
]

interface PlannedZone {
  domain: string
  text: string
  /** As the plan shows them. */
  differences: (string | number)[][]
  /** Of records, as `+1 -0`. */
  counts: string
  /** ETag of the zone that it was compared with. */
  etag: string
}

const suffix = '.zone'

export async function readZoneFile(api: DomainClient['api'], domain: string): Promise<string> {
  const path = '/api/domains/{domain}/dns/zonefile'
  return String(await unwrap(api.GET(path, { params: { path: { domain } }, parseAs: 'text' })))
}

export const putZoneFile = (
  api: DomainClient['api'],
  { domain, text }: { domain: string; text: string },
  query: { dry_run: boolean },
  headers: Record<string, string> = {},
) =>
  api.PUT('/api/domains/{domain}/dns/zonefile', {
    params: { path: { domain }, query },
    body: text,
    bodySerializer: (body) => body,
    headers: { 'content-type': 'text/dns', ...headers },
  })

export async function* domainPages({ api }: DomainClient, search?: string) {
  for (let page = 1; ; page += 1) {
    const query = { page, page_size: 100, ...(search ? { search } : {}) }
    const { domains, pagination } = await unwrap(api.GET('/api/domains', { params: { query } }))
    yield domains
    if (page >= pagination.total_pages) return
  }
}

/** Writes the zone files of the caller's domains that use the registrar's DNS and have records. */
export async function pullZones(client: DomainClient, [folder = '']: string[]) {
  makeDirectory(folder)
  for await (const domains of domainPages(client)) {
    for (const { name: domain, uses_registrar_dns } of domains) {
      if (uses_registrar_dns === false) continue
      const text = await readZoneFile(client.api, domain)
      // Skip empty zones: the service rejects a zone file without records.
      if (!/^(?:[^;$\s]|; domain-service record )/m.test(text)) continue
      await writeFile(join(folder, domain + suffix), text)
      process.stdout.write(`${domain}\n`)
    }
  }
}

/** Prints what `apply` would change. Exit status: 0 no change, 2 changes, 1 the service rejects a file. */
export async function planZones(client: DomainClient, [folder = '']: string[]) {
  const { zones, isComplete } = await plan(client, folder)
  if (!isComplete) process.exitCode = 1
  else if (zones.length > 0) process.exitCode = 2
}

/**
 * Prints the plan, then applies it through the queue: each zone only if it has not changed since the comparison. Prints
 * one line for each domain. Exit status 1 if a zone is not written, or if a file is rejected; then nothing is changed.
 */
export async function applyZones(client: DomainClient, [folder = '']: string[]) {
  const { zones, isComplete } = await plan(client, folder)
  if (!isComplete) {
    process.stderr.write('Nothing was changed.\n')
    process.exitCode = 1
    return
  }
  const queued: { zone: PlannedZone; id: number }[] = []
  for (const zone of zones) queued.push({ zone, id: await enqueue(client, zone) })
  for (const { zone, id } of queued) {
    const { status, problem } = await client.waitForChange(id)
    process.stdout.write(`${zone.domain}  ${status}  ${problem ? problem.detail : zone.counts}\n`)
    if (status !== 'confirmed') process.exitCode = 1
  }
}

async function plan(client: DomainClient, folder: string) {
  const zones: PlannedZone[] = []
  let isComplete = true
  for (const { domain, file } of await listZoneFiles(folder)) {
    const text = await readFile(file, 'utf8')
    try {
      const zone = await compare(client, domain, text)
      if (zone.differences.length === 0) continue
      zones.push(zone)
      process.stdout.write(`${domain}\n${formatTable(zone.differences)}`)
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error
      process.stderr.write(`${domain}: ${error.message} (${error.code})\n`)
      isComplete = false
    }
  }
  if (isComplete && zones.length === 0) process.stdout.write('No change.\n')
  return { zones, isComplete }
}

async function listZoneFiles(folder: string) {
  const files = (await readdir(folder)).filter((name) => name.endsWith(suffix)).sort()
  if (files.length === 0) throw new CommandError(`${folder} has no file named like example.com.zone.`)
  return files.map((name) => ({ domain: name.slice(0, -suffix.length), file: join(folder, name) }))
}

async function compare({ api }: DomainClient, domain: string, text: string): Promise<PlannedZone> {
  const path = { domain }
  const { data: zone, response, error } = await api.GET('/api/domains/{domain}/dns/hosts', { params: { path } })
  if (!zone) throw ProblemError.of(error, response)
  const etag = response.headers.get('etag') ?? ''
  const data = await unwrap(putZoneFile(api, { domain, text }, { dry_run: true }, { 'if-match': etag }))
  if (!('hosts' in data)) throw new Error('The service did not preview the write.')
  const { changes, email_type } = data
  const differences = [
    ...(email_type === zone.email_type ? [] : [['  ~', 'email type', `${zone.email_type} to ${email_type}`]]),
    ...changes.removed.map((each) => ['  -', ...cellsOf(each)]),
    ...changes.added.map((each) => ['  +', ...cellsOf(each)]),
  ]
  return { domain, text, differences, etag, counts: `+${changes.added.length} -${changes.removed.length}` }
}

async function enqueue(client: DomainClient, zone: PlannedZone): Promise<number> {
  const headers = { prefer: 'respond-async', 'if-match': zone.etag }
  const data = await unwrap(putZoneFile(client.api, zone, { dry_run: false }, headers))
  if (!('id' in data)) throw new Error('The service did not queue the write.')
  return Number(data.id)
}
