import { z } from 'zod'
import { recordTypes } from '../../dns/record-types.ts'
import { AtDomain } from '../zone-request.ts'

export const exampleRrset = { name: 'hello', type: 'A', ttl: 1800, values: ['192.0.2.10'] }

export const Rrset = z
  .object({
    name: z.string().meta({ description: '@ for the domain itself' }),
    type: z.string(),
    ttl: z.int().meta({ description: 'seconds; the lowest of the records' }),
    values: z
      .array(z.string())
      .meta({ description: 'addresses; of MX with the preference: 10 mx1.example.net' }),
    mixed_ttl: z.literal(true).optional().meta({ description: 'the TTLs of the records differ' }),
  })
  .meta({ id: 'Rrset', examples: [exampleRrset] })

export const AtRrset = AtDomain.extend({
  name: z.string().meta({ description: '@ for the domain itself', examples: [exampleRrset.name] }),
  type: z.string().meta({ description: 'in any case', enum: [...recordTypes], examples: ['A'] }),
})
