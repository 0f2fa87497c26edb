import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/ledger/database.ts'

test('the database keeps synchronous=FULL when it is reopened', () => {
  const folder = mkdtempSync(join(tmpdir(), 'database-'))
  openDatabase(folder).close()
  const again = openDatabase(folder)
  onTestFinished(() => {
    again.close()
    rmSync(folder, { recursive: true })
  })

  expect(again.pragma('synchronous', { simple: true })).toBe(2)
  expect(again.pragma('journal_mode', { simple: true })).toBe('wal')
})
