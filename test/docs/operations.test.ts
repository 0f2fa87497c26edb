import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { readConfig as readDomainConfig } from '../../packages/domain-service/src/config.ts'
import { createService as makeDomainService } from '../../packages/domain-service/src/service.ts'
import { type App, createLogger } from '../../packages/http/src/index.ts'

import { readConfig as readStaticConfig } from '../../packages/static-service/src/config.ts'
import { createService as makeStaticService } from '../../packages/static-service/src/service.ts'
import { startSharedStores } from '../../packages/static-service/test/support/shared-stores.ts'

const read = (name: string) => readFileSync(join(import.meta.dirname, '../../docs/operations', name), 'utf8')

const Rule = z.object({
  expr: z.string(),
  record: z.string().optional(),
  alert: z.string().optional(),
  annotations: z.object({ summary: z.string().min(10), description: z.string().min(20) }).optional(),
})
const Rules = z.object({ groups: z.array(z.object({ name: z.string(), rules: z.array(Rule) })) })
const Dashboard = z.object({
  uid: z.string(),
  templating: z.object({ list: z.array(z.object({ name: z.string(), type: z.string() })) }),
  panels: z.array(
    z.object({
      id: z.int(),
      type: z.string(),
      title: z.string(),
      datasource: z.object({ uid: z.literal(`\${datasource}`) }).optional(),
      targets: z.array(z.object({ expr: z.string() })).optional(),
    }),
  ),
})
const Scraping = z.object({
  rule_files: z.array(z.string()),
  scrape_configs: z.array(
    z.object({ job_name: z.string(), authorization: z.object({ credentials_file: z.string() }) }),
  ),
})

const rules = Rules.parse(parse(read('prometheus-rules.yml'))).groups.flatMap((group) => group.rules)
const dashboard = Dashboard.parse(JSON.parse(read('grafana-dashboard.json')))
const scraping = Scraping.parse(parse(read('prometheus.yml')))

let exposed: Set<string>

beforeAll(async () => {
  await using stores = await startSharedStores()
  const replicated = { JWT_SECRET: 'a secret of these tests, 32 bytes', ...stores.env }
  exposed = new Set([
    ...(await scrape('domain-service')),
    ...(await scrape('static-service')),
    ...(await scrape('domain-service', replicated)),
    ...(await scrape('static-service', replicated)),
  ])
})

test.each(rules.map((rule) => [rule.alert ?? rule.record ?? '', rule.expr]))(
  'the rule %s uses only existing metrics',
  (_name, expr) => {
    const recorded = new Set(rules.map(({ record }) => record))

    const unknown = namesIn(expr).filter((name) => !exposed.has(name) && !recorded.has(name))

    expect(namesIn(expr)).not.toEqual([])
    expect(unknown).toEqual([])
  },
)

test.each(dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const)))(
  'the panel %s uses only existing metrics: %s',
  (_title, expr) => {
    expect(namesIn(expr)).not.toEqual([])
    expect(namesIn(expr).filter((name) => !exposed.has(name))).toEqual([])
  },
)

test('every alert has a summary, a description and an entry in the guide', () => {
  const alerts = rules.filter(({ alert }) => alert)

  expect(alerts.length).toBeGreaterThan(10)
  expect(alerts.filter(({ annotations }) => !annotations).map(({ alert }) => alert)).toEqual([])
  const guide = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8')
  expect(alerts.filter(({ alert }) => !guide.includes(`\`${alert}\``))).toEqual([])
})

test('the dashboard has unique panel ids and its data source as a variable', () => {
  const ids = dashboard.panels.map(({ id }) => id)

  expect(new Set(ids).size).toBe(ids.length)
  expect(dashboard.templating.list).toContainEqual(expect.objectContaining({ name: 'datasource', type: 'datasource' }))
  const drawn = dashboard.panels.filter(({ type }) => type !== 'row')
  expect(drawn.filter(({ datasource, targets }) => !datasource || !targets)).toEqual([])
})

test('the scrape example has the jobs that the rules use, and reads the token from a file', () => {
  expect(scraping.scrape_configs.map(({ job_name }) => job_name)).toEqual(['domain-service', 'static-service'])
  expect(scraping.rule_files).toEqual(['prometheus-rules.yml'])
})

/** Metric names in a PromQL expression. */
function namesIn(expr: string): string[] {
  const bare = expr
    .replace(/"(?:[^"\\]|\\.)*"/g, '')
    .replace(/\{[^}]*\}|\[[^\]]*\]/g, ' ')
    .replace(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, ' ')
  const names = [...bare.matchAll(/[a-zA-Z_:][a-zA-Z0-9_:]*(?!\s*\(|[a-zA-Z0-9_:])/g)]
  return names.map(([name]) => name).filter((name) => !['and', 'or', 'unless'].includes(name))
}

/** Starts a service; resolves with the names of its metrics, including histogram series. */
async function scrape(
  name: 'domain-service' | 'static-service',
  settings: Record<string, string> = {},
): Promise<string[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'operations-'))
  const env = {
    DATA_DIR: dataDir,
    ADMIN_USERNAME: 'admin',
    ADMIN_PASSWORD: 'correct horse battery',
    METRICS_TOKEN: 'a-token-for-metrics',
    BACKUP_DIR: dataDir,
    ...settings,
  }
  const log = createLogger({ name, level: 'silent' })
  const app: App =
    name === 'domain-service'
      ? await makeDomainService(readDomainConfig(env), log)
      : await makeStaticService(readStaticConfig(env), log)
  try {
    await app.listen({ host: '127.0.0.1', port: 0 })
    const { port } = app.server.address() as AddressInfo // An address with a port, since we listen on one.
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`, {
      headers: { authorization: 'Bearer a-token-for-metrics' },
    })
    const types = [...(await answer.text()).matchAll(/^# TYPE (\S+) (\S+)$/gm)]
    return ['up', ...types.flatMap(([, name = '', type]) => partsOf(name, type))]
  } finally {
    await app.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

const partsOf = (name: string, type: string | undefined) =>
  type === 'histogram' ? [`${name}_bucket`, `${name}_count`, `${name}_sum`] : [name]
