import { z } from 'zod'
import { type ChangeEntry, changeActions } from '../../catalog/changes/change-entry.ts'
import { change } from '../openapi-examples.ts'

/** The number of a change in a URL. */
export const ChangeId = z
  .string()
  .regex(/^[1-9][0-9]{0,14}$/, 'must be the number of a change')
  .transform(Number)
  .meta({ type: 'integer', minimum: 1, description: 'number of a change', examples: [change.id] })

/** A change of files as JSON. */
export const Change = z
  .object({
    id: z.int().meta({ description: 'grows with time; some numbers are no change' }),
    at: z.iso.datetime(),
    by: z.string().meta({ description: 'username' }),
    token: z.string().nullable().meta({ description: 'name of the API token that was used' }),
    request_id: z.string(),
    action: z.enum(changeActions),
    prefix: z.string().nullable().meta({ description: 'the directory that the request named' }),
    version: z.string().nullable().meta({ description: 'the version recorded with the change' }),
    added: z.int(),
    replaced: z.int(),
    removed: z.int(),
    bytes: z
      .int()
      .meta({ description: 'of the files stored; of those removed if none was stored' }),
    paths: z.array(z.string()).meta({ description: 'up to ten of the paths' }),
  })
  .meta({ id: 'Change', examples: [change] })

export const describeChange = ({ requestId, ...rest }: ChangeEntry): z.infer<typeof Change> => ({
  ...rest,
  request_id: requestId,
})
