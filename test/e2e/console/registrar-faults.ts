import assert from 'node:assert/strict'
import type { Tester } from './tester.ts'

/** The sandbox meets its next calls with a fault. */
export async function addFault({ everything }: Tester, fault: object) {
  const response = await fetch(`${everything.sandbox}/_faults`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ faults: [fault] }),
  })
  assert.ok(response.ok, await response.text())
}

/** Writes of the registrar wait until they are released. */
export async function holdRegistrar(tester: Tester) {
  await addFault(tester, { kind: 'slow', command: 'namecheap.domains.dns.sethosts', ms: 600_000 })
  return () => clearFaults(tester)
}

/** Calls that a fault delays go on. */
export const clearFaults = ({ everything }: Tester) => fetch(`${everything.sandbox}/_faults`, { method: 'DELETE' })
