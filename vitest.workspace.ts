import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { readNotTested } from './test/support/not-tested.ts'
import { stopSharedServer } from './test/support/postgres/test-server.ts'
import { createRunDirectory } from './test/support/run-directory.ts'

// Killed processes cannot remove their files: every temporary file of a run is below one directory. This file is evaluated
// for each project, hence the variable.
if (!process.env.TEST_RUN_DIRECTORY) {
  const directory = createRunDirectory()
  process.env.TEST_RUN_DIRECTORY = directory
  process.env.TMPDIR = directory
  process.on('exit', () => {
    stopSharedServer(directory)
    const notTested = readNotTested(directory)
    if (notTested) process.stderr.write(`NOT TESTED: ${notTested}\n`)
    try {
      rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
    } catch (error) {
      process.stderr.write(`${directory} is left: ${error}\n`) // That fails no test.
    }
  })
  // Tests of processes run what users run.
  execFileSync(process.execPath, [join(import.meta.dirname, 'scripts/build/main.ts')])
}

// `npm run test:storages`: the projects that repeat promises on PostgreSQL have the slow tests too.
const isWhole = process.env.TEST_STORAGES === 'all'

// Services start threads and processes: they share what was compiled before.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/compiled')

// `extends` passes the root's timeout on; without it a project has vitest's default of five seconds.
const services = ['domain-service', 'static-service'].map((name) => ({
  extends: true as const,
  test: { name, root: `packages/${name}` },
}))

/** What crosses packages, and the packages that both services share. */
const rest = 'repository'

// Files that take longer than others of their length.
const long = [
  ...['acme-challenges', 'approvals', 'backup', 'calls', 'campaign', 'catalog', 'commands', 'console', 'crash-points'],
  ...['cut-connections', 'database-faults', 'domain-list', 'domain-writes', 'failing-disk', 'full-disk', 'fuzz'],
  ...['history-model', 'hostile-paths', 'httpreq', 'list-query', 'moving', 'power-loss', 'readme', 'registrar-zone'],
  ...['set-hosts', 'start', 'tus-routes', 'uploads', 'webhooks'],
]

/**
 * Projects follow each other: a worker that changes its project ends, and another loads the modules. Each begins with its long
 * files, and the first one has the longest, the last one many short ones: a long one at the end would run alone.
 */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const sorted = await super.sort(files)
    const byLength = sorted.toSorted((a, b) => Number(isLong(b)) - Number(isLong(a)))
    const rank = [rest, 'domain-service-shared', 'static-service-shared', 'static-service', 'domain-service']
    return byLength.toSorted((a, b) => rank.indexOf(a.project.name) - rank.indexOf(b.project.name))
  }
}

const isLong = ({ moduleId }: TestSpecification) => long.some((name) => moduleId.endsWith(`${name}.test.ts`))

export default defineConfig({
  test: {
    sequence: { sequencer: LongFirst },
    setupFiles: ['random-seed', 'bundled-threads', 'exit-with-run'].map((name) =>
      join(import.meta.dirname, `test/support/${name}.ts`),
    ),
    // Long enough for a machine that is fifty times as slow: only a test that hangs reaches it.
    testTimeout: 1_200_000,
    // The first hook that needs PostgreSQL starts it.
    hookTimeout: 1_200_000,
    // vitest's default of one second is too short on a busy machine: only a condition that never holds reaches this.
    expect: { poll: { timeout: 180_000 } },
    // Tests mostly wait for disks and child processes: eight files at a time keep two cores busy.
    maxWorkers: 8,
    // A young generation of V8's size at its start is full of what a test's service still uses: each collection would copy it.
    execArgv: ['--min-semi-space-size=16'],
    // The files of a project share these processes: a new one for each file takes 0.4 s of a core to load its modules.
    isolate: false,
    projects: [
      ...services,
      // The same promises on PostgreSQL and S3.
      {
        extends: true,
        test: {
          name: 'static-service-shared',
          root: 'packages/static-service',
          include: isWhole
            ? ['test/{routes,serving}/**/*.test.ts', 'test/service.test.ts']
            : ['test/routes/**/*.test.ts'],
          exclude: [
            // They choose their stores themselves.
            ...['**/large-files.test.ts', '**/routes/static.test.ts'],
            // Clients of others send what tus-routes.test.ts sends here.
            ...(isWhole ? [] : ['**/tus-clients.test.ts']),
          ],
          env: { TEST_STORAGE: 'shared' },
        },
      },
      // Writes, their history and their integrations on PostgreSQL: usually without files that cause no statement of their own.
      {
        extends: true,
        test: {
          name: 'domain-service-shared',
          root: 'packages/domain-service',
          include: isWhole
            ? ['test/{routes,integrations,zones}/**/*.test.ts', 'test/metrics.test.ts']
            : [
                'test/routes/{add-record,get-zone,patch-record,patch-zone,remove-record,replace-zone}.test.ts',
                'test/routes/{history,changes,approvals,search-records}.test.ts',
                'test/zones/{idempotent-writes,outside-changes}.test.ts',
                'test/zones/batch/{batch,registrar-zone}.test.ts',
                'test/integrations/httpreq.test.ts',
                'test/integrations/registrar-door/set-hosts.test.ts',
              ],
          // They start replicas on PostgreSQL in any case; in PostgreSQL there is no users.json.
          exclude: ['test/zones/shared-*.test.ts', 'test/routes/users-file.test.ts'],
          env: { TEST_STORAGE: 'postgres' },
        },
      },
      // One project: each would load the modules that they share again.
      {
        extends: true,
        test: {
          name: rest,
          include: ['{packages/*/,}test/**/*.test.ts'],
          exclude: ['packages/{domain-service,static-service}/**'],
        },
      },
    ],
  },
})
