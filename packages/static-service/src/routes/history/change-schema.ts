import { z } from 'zod'
import { type ChangeEntry, changeActions } from '../../catalog/changes/change-entry.ts'
import { change, changedFile } from '../openapi-examples.ts'

/** The number of a change in a URL. */
export const ChangeId = z
  .string()
  .regex(/^[1-9][0-9]{0,14}$/, 'must be the number of a change')
  .transform(Number)
  .meta({ type: 'integer', minimum: 1, description: 'number of a change', examples: [change.id] })

/** Of a change, a file of it, or a state of a path. */
export const Forgotten = z
  .literal(true)
  .optional()
  .meta({ description: 'files of it have been forgotten: only their paths are known' })

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
    forgotten: Forgotten,
  })
  .meta({ id: 'Change', examples: [change] })

const State = z.object({ sha256: z.string(), size: z.int() }).nullable()

/** A file before and after a change, or at two moments. */
export const ChangedFile = z
  .object({ path: z.string(), before: State, after: State, forgotten: Forgotten })
  .meta({ id: 'ChangedFile', examples: [changedFile] })

export const describeState = (state: { digest: string; size: number } | null) =>
  state && { sha256: state.digest, size: state.size }

export const describeChange = ({
  requestId,
  isForgotten,
  ...rest
}: ChangeEntry): z.infer<typeof Change> => ({
  ...rest,
  request_id: requestId,
  ...forgottenIf(isForgotten),
})

export const forgottenIf = (isForgotten: boolean) =>
  isForgotten ? { forgotten: true as const } : {}
