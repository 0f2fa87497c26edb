import { z } from 'zod'

/** RRsets by name and types. `*` as a whole label stands for one or more labels; `@` is the domain itself. */
export const RecordLimit = z
  .strictObject({
    name: z
      .string()
      .trim()
      .toLowerCase()
      .min(1)
      .max(253)
      .refine(isNamePattern, 'must be a name relative to the domain, with at most one label *')
      .meta({
        description: 'relative to the domain; `*` for one label or more; `@` for the domain',
      }),
    types: z
      .array(
        z
          .string()
          .toUpperCase()
          .regex(/^[A-Z0-9]{1,10}$/, 'must be a record type such as TXT'),
      )
      .min(1)
      .max(20),
  })
  .meta({ id: 'RecordLimit' })
export type RecordLimit = z.infer<typeof RecordLimit>

/** Whether the limits name this RRset; `name` is relative to its domain, `@` for the domain itself. */
export const namesRrset = (limits: readonly RecordLimit[], name: string, type: string) =>
  limits.some((limit) => limit.types.includes(type.toUpperCase()) && matchesName(limit.name, name))

/** For messages: `_acme-challenge TXT, home A/AAAA`. */
export const describeRecordLimits = (limits: readonly RecordLimit[]) =>
  limits.map(({ name, types }) => `${name} ${types.join('/')}`).join(', ')

function matchesName(pattern: string, name: string): boolean {
  const wanted = pattern.split('.')
  const labels = name.toLowerCase().split('.')
  const star = wanted.indexOf('*')
  if (star === -1) return pattern === labels.join('.')
  const after = wanted.length - star - 1
  if (labels[0] === '@' || labels.length < wanted.length) return false
  return (
    wanted.slice(0, star).every((label, at) => labels[at] === label) &&
    wanted.slice(star + 1).every((label, at) => labels[labels.length - after + at] === label)
  )
}

function isNamePattern(text: string): boolean {
  const labels = text.split('.')
  const stars = labels.filter((label) => label === '*').length
  const isLabel = (label: string) => /^(?:\*|@|[\p{L}\p{M}\p{N}_-]{1,63})$/u.test(label)
  return stars <= 1 && labels.every(isLabel) && (labels.length === 1 || !labels.includes('@'))
}
