import { listSchema } from '@domains-and-files/http'
import { z } from 'zod'
import { shownLimits, wantedLimits } from '../limits.ts'
import { maxPasswordLength } from '../login/password.ts'
import { limitsOf, Role } from '../rights.ts'
import { LocalUsername, Source, type User } from './user.ts'

const example = {
  username: 'alice',
  role: 'editor' as const,
  domains: ['example.com'],
  folders: null,
  writes: null,
  source: 'local' as const,
  created_at: '2027-01-15T09:30:00.000Z',
  last_login_at: null,
}

export const UserRecord = z
  .object({
    username: z.string(),
    role: Role,
    ...shownLimits,
    source: Source,
    created_at: z.iso.datetime().nullable().meta({ description: 'null: not known' }),
    last_login_at: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'null: not yet, in this service' }),
  })
  .meta({ id: 'User', examples: [example] })

export const UserList = listSchema('UserList', 'users', UserRecord)

export const NewUser = z
  .strictObject({
    username: LocalUsername,
    role: Role,
    password: z
      .string()
      .max(maxPasswordLength)
      .optional()
      .meta({ description: 'without one, the response has an `invite`' }),
    ...wantedLimits,
  })
  .meta({
    id: 'NewUser',
    examples: [{ username: 'alice', role: 'editor', domains: ['example.com'] }],
  })

export const CreatedUser = UserRecord.extend({
  invite: z.string().optional().meta({
    description: 'shown only now, valid once and for 72 hours: `POST /api/auth/password` takes it',
  }),
}).meta({ id: 'CreatedUser', examples: [{ ...example, invite: 'Zk3v8QmT1xY7pLr2Wd5c' }] })

export const UserChange = z
  .strictObject({
    role: Role.optional(),
    domains: wantedLimits.domains.nullable().meta({ description: 'null: all' }),
    folders: wantedLimits.folders.nullable().meta({ description: 'null: all' }),
    writes: wantedLimits.writes.nullable(),
    invite: z.literal(true).optional().meta({
      description:
        'a new invitation, after a forgotten password or an expired invitation: the response has it',
    }),
  })
  .refine((change) => Object.keys(change).length > 0, 'must change something')
  .meta({ id: 'UserChange', examples: [{ role: 'viewer' }] })

/** The user with other rights: null gives up a limit, undefined keeps it. */
export function changeRights(
  { role, domains, folders, writes, ...user }: User,
  change: z.infer<typeof UserChange>,
): User {
  const limits = limitsOf({ ...limitsOf({ domains, folders, writes }), ...change })
  return { ...user, role: change.role ?? role, ...limits }
}

export const AtUser = z.strictObject({ username: z.string().meta({ examples: ['alice'] }) })
