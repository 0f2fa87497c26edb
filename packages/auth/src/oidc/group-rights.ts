import { z } from 'zod'
import { Domains, Folders } from '../limits.ts'
import { hasRole, limitsOf, Role } from '../rights.ts'

const GroupRights = z.object({
  group: z.string(),
  role: Role,
  domains: Domains.max(100).optional(),
  folders: Folders.optional(),
})

/** What OIDC_ROLES gives to a group of the provider; `*` stands for everybody. */
export type GroupRights = z.infer<typeof GroupRights>

/**
 * The setting OIDC_ROLES, such as `dns-admins=admin, shop=editor:example.com|*.example.net, web=editor:docs/|site/, *=viewer`.
 * A limit with a slash is a folder, another one a domain.
 */
export const groupRights = z.string().transform((text, context): GroupRights[] => {
  const entries = text.split(',').flatMap((entry) => entry.trim() || [])
  const groups = entries.flatMap((entry) => readEntry(entry) ?? [])
  if (groups.length > 0 && groups.length === entries.length) return groups
  context.addIssue('must be like dns-admins=admin, shop=editor:example.com|*.example.net, *=viewer')
  return z.NEVER
})

function readEntry(entry: string): GroupRights | undefined {
  const [group, right = ''] = halves(entry, '=')
  const [role, list] = halves(right, ':')
  const names = list?.split('|').map((name) => name.trim()) ?? []
  const folders = names.filter((name) => name.includes('/'))
  const domains = names.filter((name) => !name.includes('/'))
  return GroupRights.safeParse({
    ...{ group, role },
    ...limitsOf({
      domains: domains.length > 0 ? domains : undefined,
      folders: folders.length > 0 ? folders : undefined,
    }),
  }).data
}

/** What stands before and after the first such sign. */
function halves(text: string, sign: string): string[] {
  const [first = '', ...rest] = text.split(sign)
  return [first.trim(), ...(rest.length > 0 ? [rest.join(sign).trim()] : [])]
}

/**
 * The rights of a member of these groups: the highest role, with the limits of the groups that give it. `kind` is what
 * this service limits to: a group with limits of the other kind only has no rights here.
 * @returns undefined for a member of no group that counts.
 */
export function rightsOfGroups(
  groups: readonly string[],
  { roles, kind }: { roles: readonly GroupRights[]; kind: 'domains' | 'folders' },
) {
  const counting = roles.filter(
    ({ group, domains, folders, [kind]: limit }) =>
      (group === '*' || groups.includes(group)) && (limit || (!domains && !folders)),
  )
  const best = counting.filter(({ role }) =>
    counting.every((other) => hasRole({ role }, other.role)),
  )
  const [first] = best
  if (!first) return undefined
  const limits = best.map(({ [kind]: limit }) => limit)
  const union = limits.flatMap((limit) => limit ?? [])
  return {
    role: first.role,
    ...limitsOf({ [kind]: limits.includes(undefined) ? undefined : [...new Set(union)] }),
  }
}
