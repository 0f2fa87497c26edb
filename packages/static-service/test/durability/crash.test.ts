import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { check } from '../../src/maintenance/files-command.ts'
import { run } from '../support/program.ts'
import { countInterrupted, findLosses, makeWriters, settle, writeUntilKilled } from '../support/writers.ts'

// CRASH_ROUNDS=300 is the long form (npm run faults). Each round kills at a random moment of the same writes.
const rounds = Number(process.env.CRASH_ROUNDS ?? 4)

test(`after each of ${rounds} kills nothing acknowledged is lost and nothing is there by halves`, async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'static-crash-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const everybody = makeWriters(6)
  let program = await run(dataDir)
  onTestFinished(() => program.kill())
  const token = await program.logIn()
  let acknowledged = 0

  for (let round = 0; round < rounds; round += 1) {
    const kill = () => program.child.kill('SIGKILL')
    const writing = { token, writers: everybody }
    acknowledged += await writeUntilKilled(program, writing, { kill, withinMs: 150 })
    await program.kill()

    program = await run(dataDir)
    expect(readdirSync(join(dataDir, 'tmp'))).toEqual([])
    for (const writer of everybody) {
      expect(await findLosses(program, token, writer)).toEqual([])
      await settle(program, writer)
    }
    // On a slow machine the sweep that a start begins goes on for a while.
    const report = () => check({ DATA_DIR: dataDir })
    await expect.poll(report).toMatchObject({ damages: [], orphans: [] })
  }

  expect(acknowledged).toBeGreaterThanOrEqual(rounds)
  const interrupted = countInterrupted(everybody)
  process.stdout.write(`kills: ${JSON.stringify({ rounds, acknowledged, ...interrupted })}\n`)
}, 3_600_000)
