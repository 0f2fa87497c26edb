import { z } from 'zod'

const Count = z.int().min(0)
const Milliseconds = Count.max(3_600_000)

const about = {
  /** Only calls of this command, in any case; every command if left out. */
  command: z.string().toLowerCase().optional(),
  /** Only calls about this domain; every domain if left out. */
  domain: z.string().toLowerCase().optional(),
  /** How many calls that match are left alone first. */
  after: Count.default(0),
  /** How many calls it strikes; 0 is for ever. */
  times: Count.default(1),
}

/** Whether the command is carried out although the answer will not say so. */
const executed = z.boolean().default(true)
const spared = z.boolean().default(false)

/** Where an answer breaks off: so many bytes in, or half way if left out. */
const at = Count.optional()
const ErrorNumber = z.coerce.string().regex(/^\d{1,9}$/)

/** One way of failing. What each kind does stands beside it. */
export const Fault = z.discriminatedUnion('kind', [
  // Waits before or after the command is carried out; then the answer goes out as usual.
  z.strictObject({
    kind: z.literal('slow'),
    ...about,
    ms: Milliseconds.default(1000),
    when: z.enum(['before', 'after']).default('before'),
  }),
  // Destroys the socket before the command is carried out.
  z.strictObject({ kind: z.literal('reset'), ...about }),
  // Carries the command out, then destroys the socket without an answer.
  z.strictObject({ kind: z.literal('lost'), ...about }),
  // Sends the first bytes. `length` announced the whole; `close` announced nothing, so the end looks clean.
  z.strictObject({
    kind: z.literal('cut'),
    ...about,
    execute: executed,
    at,
    framing: z.enum(['length', 'close']).default('length'),
  }),
  // Sends the first bytes, then nothing more, and keeps the connection open.
  z.strictObject({ kind: z.literal('hang'), ...about, execute: executed, at }),
  // The whole answer but its last tag, with a length that fits.
  z.strictObject({ kind: z.literal('no_close'), ...about, execute: executed }),
  // A 200 without a body.
  z.strictObject({ kind: z.literal('empty'), ...about, execute: executed }),
  // A 200 that begins like an answer and goes on for so many MiB.
  z.strictObject({
    kind: z.literal('junk'),
    ...about,
    execute: executed,
    mib: z.int().min(1).max(256).default(1),
  }),
  // A page for people, as a proxy in front of the registrar shows it.
  z.strictObject({
    kind: z.literal('html'),
    ...about,
    execute: spared,
    status: z.int().min(200).max(599).default(503),
  }),
  // An HTTP status with a short text.
  z.strictObject({
    kind: z.literal('status'),
    ...about,
    execute: spared,
    status: z.int().min(200).max(599).default(405),
    message: z.string().default('Too many requests'),
  }),
  // An error in HTTP 200; with `skeleton` there is a result beside it that looks like data.
  z.strictObject({
    kind: z.literal('error'),
    ...about,
    execute: spared,
    number: ErrorNumber.default('500000'),
    message: z.string().default('Too many requests'),
    skeleton: z.boolean().default(false),
  }),
  // The good answer of another command.
  z.strictObject({
    kind: z.literal('wrong_command'),
    ...about,
    execute: executed,
    answer: z.string().default('namecheap.users.getBalances'),
  }),
  // An answer given before, word for word: the last to this command and domain, else the last of all.
  z.strictObject({ kind: z.literal('duplicate'), ...about, execute: executed }),
  // Says that all went well, and changed nothing.
  z.strictObject({ kind: z.literal('ignored'), ...about }),
  // Status OK, but the result says IsSuccess="false" (or Updated="false").
  z.strictObject({ kind: z.literal('is_success_false'), ...about, execute: spared }),
  // Status ERROR with no errors in it, around the usual result.
  z.strictObject({ kind: z.literal('status_error_without_errors'), ...about, execute: executed }),
  // A document type that defines an entity, and the usual answer using it.
  z.strictObject({ kind: z.literal('doctype'), ...about, execute: executed }),
])

export type Fault = z.output<typeof Fault>
export type FaultInput = z.input<typeof Fault>
export type Slow = Extract<Fault, { kind: 'slow' }>
export type Breakage = Exclude<Fault, Slow>

/** The body of `POST /_faults`. */
export const FaultList = z.strictObject({ faults: z.array(Fault).min(1).max(100) })

/** The faults that wait for their call, in the order they were given. */
export class FaultQueue {
  #waiting: Fault[] = []

  get left(): readonly Fault[] {
    return this.#waiting
  }

  add(faults: FaultInput[]): void {
    this.#waiting.push(...faults.map((fault) => Fault.parse(fault)))
  }

  clear(): void {
    this.#waiting = []
  }

  /** Takes what strikes this call: a delay, one other fault, or both. */
  take(command: string, domain: string | undefined): { slow?: Slow; broken?: Breakage } {
    const struck: { slow?: Slow; broken?: Breakage } = {}
    this.#waiting = this.#waiting.flatMap((fault) => {
      if ((fault.command ?? command) !== command) return [fault]
      if (fault.domain !== undefined && fault.domain !== domain) return [fault]
      if (fault.after > 0) return [{ ...fault, after: fault.after - 1 }]
      if (fault.kind === 'slow' ? struck.slow : struck.broken) return [fault]
      if (fault.kind === 'slow') struck.slow = fault
      else struck.broken = fault
      if (fault.times === 0) return [fault]
      return fault.times > 1 ? [{ ...fault, times: fault.times - 1 }] : []
    })
    return struck
  }
}
