import type { ChangeFilter } from '../ledger.ts'

/** The condition of a list in SQL, with its parameters. */
export function whereOf(filter: ChangeFilter): { sql: string; values: Record<string, unknown> } {
  const conditions: string[] = []
  const values: Record<string, unknown> = {}
  const add = (sql: string, value: Record<string, unknown> = {}) => {
    conditions.push(sql)
    Object.assign(values, value)
  }
  if (filter.domain !== undefined) add('domain = :domain', { domain: filter.domain })
  if (filter.by !== undefined) add('by = :by', { by: filter.by })
  if (filter.status !== undefined) add('status = :status', { status: filter.status })
  if (filter.since !== undefined) add('created_at >= :since', { since: filter.since.getTime() })
  if (filter.sentOnly) add('sent_at is not null')
  if (filter.domains !== undefined) add(visible, visibleValues(filter.domains))
  return { sql: conditions.length > 0 ? `where ${conditions.join(' and ')}` : '', values }
}

const visible = `(domain in (select value from json_each(:names)) or exists
  (select 1 from json_each(:suffixes) where substr(domain, -length(value)) = value))`

const visibleValues = (patterns: string[]) => ({
  names: JSON.stringify(patterns.filter((pattern) => !pattern.startsWith('*'))),
  suffixes: JSON.stringify(
    patterns.filter((pattern) => pattern.startsWith('*.')).map((pattern) => pattern.slice(1)),
  ),
})
