import type { ChangeFilter } from '../ledger.ts'

/** The condition of a list in SQL, with its parameters. */
export function conditionOf(filter: ChangeFilter): { sql: string; values: unknown[] } {
  const conditions: string[] = []
  const values: unknown[] = []
  const add = (sql: (parameter: string) => string, value: unknown) => {
    values.push(value)
    conditions.push(sql(`$${values.length}`))
  }
  if (filter.domain !== undefined) add((domain) => `domain = ${domain}`, filter.domain)
  if (filter.by !== undefined) add((by) => `by = ${by}`, filter.by)
  if (filter.status !== undefined) add((status) => `status = ${status}`, filter.status)
  if (filter.since !== undefined) add((since) => `created_at >= ${since}`, filter.since.getTime())
  if (filter.sentOnly) conditions.push('sent_at is not null')
  if (filter.domains !== undefined) {
    values.push(filter.domains.filter((pattern) => !pattern.startsWith('*')))
    const names = `$${values.length}`
    const suffixes = filter.domains.filter((pattern) => pattern.startsWith('*.'))
    add(
      (ends) => `(domain = any(${names}::text[]) or exists
        (select from unnest(${ends}::text[]) suffix where right(domain, length(suffix)) = suffix))`,
      suffixes.map((pattern) => pattern.slice(1)),
    )
  }
  return { sql: conditions.length > 0 ? `where ${conditions.join(' and ')}` : '', values }
}
