import { z } from 'zod'
import { Domains, Folders } from '../limits.ts'
import { hasRole, Role } from '../rights.ts'

const GroupRights = z.object({
  group: z.string(),
  role: Role,
  domains: Domains.max(100).optional(),
  folders: Folders.optional(),
})

/** The rights that OIDC_ROLES grants to a group of the provider; `*` matches everybody. */
export type GroupRights = z.infer<typeof GroupRights>

/**
 * The setting OIDC_ROLES, such as `dns-admins=admin, shop=editor:example.com|*.example.net, web=editor:docs/, *=viewer`.
 * A limit that contains a slash is a folder, any other a domain.
 */
export const groupRights = z.string().transform((text, context): GroupRights[] => {
  const entries = text.split(',').flatMap((entry) => entry.trim() || [])
  const groups = entries.flatMap((entry) => readEntry(entry) ?? [])
  if (groups.length > 0 && groups.length === entries.length) return groups
  context.addIssue('must be like dns-admins=admin, shop=editor:example.com|*.example.net, *=viewer')
  return z.NEVER
})

function readEntry(entry: string): GroupRights | undefined {
  const [, group = '', role = '', list] = /^([^=]*)=([^:]*)(?::(.*))?$/s.exec(entry) ?? []
  const names = list?.split('|').map((name) => name.trim()) ?? []
  const limits = Object.groupBy(names, (name) => (name.includes('/') ? 'folders' : 'domains'))
  return GroupRights.safeParse({ group: group.trim(), role: role.trim(), ...limits }).data
}

/**
 * The rights of a member of these groups: the highest role, with the union of the limits of the groups that grant it.
 * `kind` is this service's kind of limit: a group whose limits are all of the other kind grants nothing here.
 * @returns undefined if no group grants anything.
 */
export function rightsOfGroups(
  groups: readonly string[],
  { roles, kind }: { roles: readonly GroupRights[]; kind: 'domains' | 'folders' },
) {
  const counting = roles.filter(
    ({ group, domains, folders, [kind]: limit }) =>
      (group === '*' || groups.includes(group)) && (limit || (!domains && !folders)),
  )
  const best = counting.filter((each) => counting.every(({ role }) => hasRole(each, role)))
  const [first] = best
  if (!first) return undefined
  const isLimited = best.every(({ [kind]: limit }) => limit)
  const union = new Set(best.flatMap(({ [kind]: limit }) => limit ?? []))
  return { role: first.role, ...(isLimited && { [kind]: [...union] }) }
}
