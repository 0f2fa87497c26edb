import { z } from 'zod'
import { emailTypes } from '../dns/email-type.ts'
import { recordTypes } from '../dns/record-types.ts'
import { record } from './openapi-examples.ts'
import { AtDomain } from './zone-request.ts'

// Names, addresses and bounds are validated against the live zone: what is already there unchanged is never refused.
export const text = z.string('must be a string')
const integer = z.int('must be a whole number')

export const EmailType = z
  .string()
  .transform((value) => value.toUpperCase())
  .pipe(z.enum(emailTypes, `must be one of ${emailTypes.join(', ')}`))
  .meta({ enum: [...emailTypes], description: 'default: unchanged' })

/** The type of a record in a path, in any case. */
export const RecordType = z
  .string()
  .transform((type) => type.toUpperCase())
  .pipe(z.enum(recordTypes, `must be one of ${recordTypes.join(', ')}`))
  .meta({ description: 'in any case', enum: [...recordTypes], examples: ['A'] })

export const AtRecord = AtDomain.extend({
  record: z.string().meta({ description: 'its id, as in the zone', examples: [record.id] }),
})

/** The fields of a record in a request body, but for its type. */
export const recordFields = {
  name: text.meta({ description: '@ for the domain itself', examples: ['www'] }),
  address: text.meta({ examples: ['192.0.2.10'] }),
  ttl: integer.optional().meta({
    description: 'seconds; default: that of the live record, else 1800',
    minimum: 60,
    maximum: 60_000,
  }),
  mx_pref: integer.optional().meta({
    description: 'used for MX only; default: that of the live record, else 10',
    minimum: 0,
    maximum: 65_535,
  }),
  id: z.string().optional().meta({ description: 'ignored' }),
}

/** The records of a list in a request body. */
export const Records = z.array(
  z.strictObject({ ...recordFields, type: text.meta({ examples: ['A'] }) }),
  'must be a list of records',
)

/** The fields of a JSON merge patch of a record (RFC 7396). */
export const patchFields = {
  name: text.optional(),
  type: text.optional().meta({ description: 'as it is: a type cannot be changed' }),
  address: text.optional(),
  ttl: integer.nullable().optional().meta({ description: 'seconds; null: 1800' }),
  mx_pref: integer.nullable().optional().meta({ description: 'used for MX only; null: 10' }),
}
