import type { FaultInput } from '../../packages/registrar-sandbox/src/index.ts'

export const anyOf = (count: number) => Math.floor(Math.random() * count)
export const pick = <Item>(items: readonly Item[]): Item => items[anyOf(items.length)] as Item // None is empty.

let offset = 0
/** Ways in which a registrar fails, with new random parameters for each use. */
export const faults: (() => FaultInput)[] = [
  // Longer than the service's timeout: a late write.
  () => ({ kind: 'slow', ms: 600 + anyOf(1_500) }),
  () => ({ kind: 'slow', ms: anyOf(300), when: pick(['before', 'after']) }),
  () => ({ kind: 'cut', at: offset++ % 1_400, framing: pick(['length', 'close']) }),
  () => ({ kind: 'hang', at: anyOf(500) }),
  () => ({ kind: 'lost' }),
  () => ({ kind: 'reset' }),
  () => ({ kind: 'html', status: pick([200, 502, 503]), execute: pick([true, false]) }),
  () => ({ kind: 'status', status: pick([405, 405, 500, 504]) }),
  () => ({ kind: 'error', number: pick([500000, 3050900, 5050900]) }),
  () => ({ kind: 'error', number: pick([3050900, 9999999]), execute: true }),
  () => ({ kind: 'error', number: pick([2011170, 2019166, 2030166, 4013288]) }),
  () => ({ kind: 'no_close' }),
  () => ({ kind: 'empty' }),
  () => ({ kind: 'junk' }),
  () => ({ kind: 'wrong_command' }),
  () => ({ kind: 'duplicate' }),
  () => ({ kind: 'ignored' }),
  () => ({ kind: 'is_success_false', execute: pick([true, false]) }),
  () => ({ kind: 'status_error_without_errors', execute: pick([true, false]) }),
  () => ({ kind: 'doctype' }),
]
