import fc from 'fast-check'
import type { FaultInput } from '../../packages/registrar-sandbox/src/index.ts'

const faultOf = <Kind extends string, Fields>(
  kind: Kind,
  fields: { [Field in keyof Fields]: fc.Arbitrary<Fields[Field]> },
) => fc.record(fields).map((each) => ({ kind, ...each }))

const oneOf = fc.constantFrom
const upTo = (max: number) => fc.integer({ min: 0, max })

/** Ways in which a registrar fails. */
export const faults: fc.Arbitrary<FaultInput> = fc.oneof(
  // Longer than the service's timeout: a late write.
  faultOf('slow', { ms: fc.integer({ min: 600, max: 2_100 }) }),
  faultOf('slow', { ms: upTo(300), when: oneOf('before', 'after') }),
  faultOf('cut', { at: upTo(1_400), framing: oneOf('length', 'close') }),
  faultOf('hang', { at: upTo(500) }),
  faultOf('html', { status: oneOf(200, 502, 503), execute: fc.boolean() }),
  faultOf('status', { status: oneOf(405, 405, 500, 504) }),
  faultOf('error', { number: oneOf(500000, 3050900, 5050900) }),
  faultOf('error', { number: oneOf(3050900, 9999999), execute: oneOf(true) }),
  // Not 2019166: the service would answer 404 for that domain for a minute.
  faultOf('error', { number: oneOf(2011170, 2030166, 4013288) }),
  faultOf('is_success_false', { execute: fc.boolean() }),
  faultOf('status_error_without_errors', { execute: fc.boolean() }),
  {
    weight: 9,
    arbitrary: oneOf<FaultInput[]>(
      { kind: 'lost' },
      { kind: 'reset' },
      { kind: 'no_close' },
      { kind: 'empty' },
      { kind: 'junk' },
      { kind: 'wrong_command' },
      { kind: 'ignored' },
      { kind: 'doctype' },
    ),
  },
)
