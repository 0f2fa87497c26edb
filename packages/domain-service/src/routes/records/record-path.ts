import { validationFailed } from '@domains-and-files/http'
import { z } from 'zod'
import { recordTypes } from '../../dns/record-types.ts'
import { record } from '../openapi-examples.ts'
import { AtDomain } from '../zone-request.ts'

// The router knows the last segment by one name: a type where a record is added, else an id.

export const AtType = AtDomain.extend({
  record: z
    .string()
    .meta({ description: 'its type, in any case', enum: [...recordTypes], examples: ['A'] }),
})

export const AtRecord = AtDomain.extend({
  record: z.string().meta({ description: 'its id, as in the zone', examples: [record.id] }),
})

/** @throws 400 for a type that the registrar does not accept. */
export function typeOf(text: string): string {
  const type = text.toUpperCase()
  if (recordTypes.some((known) => known === type)) return type
  const message = `must be one of ${recordTypes.join(', ')}`
  throw validationFailed([{ path: '/path/type', message }])
}
