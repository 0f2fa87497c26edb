// The JSON of both services, as the console uses it.

export interface LoginAnswer {
  access_token: string
  expires_in: number
  user: { username: string; role: string }
}

export interface Pagination {
  page: number
  page_size: number
  total_items: number
  total_pages: number
  total_is_exact?: boolean
}

export interface DomainEntry {
  name: string
  id: string
  created_on: string | null
  expires_on: string | null
  is_expired: boolean
  is_locked: boolean | null
  auto_renew: boolean | null
  whois_guard: string | null
  is_premium: boolean | null
  uses_registrar_dns: boolean | null
}

export interface DomainList {
  domains: DomainEntry[]
  pagination: Pagination
}

export interface DomainInfo {
  name: string
  status: string | null
  owner: string | null
  created_on: string | null
  expires_on: string | null
  whois_guard: { status: string | null; expires_on: string | null }
  dns: {
    provider: string | null
    uses_registrar_dns: boolean | null
    host_count: number | null
    email_type: string | null
    nameservers: string[]
  }
  rights: string[]
}

export interface RecordInput {
  name: string
  type: string
  address: string
  ttl?: number
  mx_pref?: number
}

export interface HostRecord extends RecordInput {
  id: string
  ttl: number
}

export interface Zone {
  domain: string
  uses_registrar_dns: boolean
  email_type: string | null
  hosts: HostRecord[]
}

export interface Changes {
  added: HostRecord[]
  removed: HostRecord[]
  kept: number
  /** In lists: how many records of a large change are left out. */
  omitted?: { added: number; removed: number }
}

export interface WrittenZone extends Zone {
  changes: Changes
  warnings: string[]
  verified?: boolean
  dry_run?: true
}

export interface ZonePatch {
  remove?: string[]
  update?: (Partial<RecordInput> & { id: string })[]
  add?: RecordInput[]
  email_type?: string
}

export interface HistoryEntry {
  id: number
  at: string
  by: string
  token?: string
  request_id: string
  status: string
  reason?: string
  changes: Changes
  email_type_before: string | null
  email_type_after: string | null
}

export interface PastZone {
  email_type: string | null
  hosts: HostRecord[]
}

export interface HistoryDetail extends HistoryEntry {
  before: PastZone
  after: PastZone
}

export interface History {
  history: HistoryEntry[]
  pagination: Pagination
}

export interface LedgerChange {
  id: number
  domain: string
  status: 'queued' | 'sending' | 'confirmed' | 'refused' | 'unconfirmed' | 'cancelled'
  at: string
  by: string
  token?: string
  reason?: string
  verified?: false
  changes: Changes | null
  problem?: { code: string; detail: string; status: number }
}

export interface LedgerChanges {
  changes: LedgerChange[]
  pagination: Pagination
}

export interface RegistrarState {
  breaker: 'closed' | 'open' | 'half_open'
  budget: { window: string; limit: number; left: number; next_free_at: string | null }[]
  last_success_at: string | null
  last_failure: { at: string; code: string; detail?: string } | null
  client_ip: string
  calls_waiting: number
  domain_list: {
    domains: number | null
    read_at: string | null
    is_reading: boolean
    pages_read: number
    pages: number | null
  }
}

export interface Health {
  status: 'ok' | 'degraded' | 'unavailable'
  version: string
  uptime_seconds: number
  checks: Record<string, { status: string; breaker?: string; last_failure?: string }>
}

export interface FileRecord {
  path: string
  name: string
  category: string
  content_type: string
  size: number
  sha256: string
  url: string
  uploaded_by: string
  created_at: string
  updated_at: string
}

export interface FileList {
  files: FileRecord[]
  pagination: Pagination
}

export interface CategoryCount {
  category: string
  file_count: number
  total_size: number
}

export interface DirectoryNode {
  name: string
  path: string
  type: 'directory'
  file_count: number
  total_size: number
  children: (DirectoryNode | { name: string; path: string; type: 'file' })[] | null
}

export interface VersionRecord {
  id: number
  version: string
  changelog: string
  changelog_truncated?: boolean
  created_by: string
  created_at: string
}

export interface VersionList {
  versions: VersionRecord[]
  pagination: Pagination
}

export interface Statistics {
  total_files: number
  total_size: number
  stored_size: number
  categories: CategoryCount[]
  versions: number
}

export interface RecordLimit {
  name: string
  types: string[]
}

export interface TokenInput {
  name: string
  expires_in?: number
  role?: string
  domains?: string[]
  records?: RecordLimit[]
  networks?: string[]
}

export interface ApiToken {
  id: string | number
  name: string
  hint: string
  role: string | null
  domains: string[] | null
  records: RecordLimit[] | null
  networks: string[] | null
  created_at: string
  expires_at: string | null
  last_used_at: string | null
}
