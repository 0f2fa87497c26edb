import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'

export const Pagination = z
  .object({ page: z.int(), page_size: z.int().meta({ examples: [50] }), total_items: z.int(), total_pages: z.int() })
  .meta({ id: 'Pagination' })

/** The query parameters of a list: `page` from 1, `page_size` from 1 to `max`. */
export const pageQuery = (fallback: number, max: number) => ({
  page: wholeNumber(1, 1_000_000_000).default(1),
  page_size: wholeNumber(1, max).default(fallback),
})

interface Page {
  page: number
  page_size: number
}

/** The `pagination` of a list response. A page past the end is an empty list, not an error. */
export const paginate = ({ page, page_size }: Page, total: number) => ({
  page,
  page_size,
  total_items: total,
  total_pages: Math.ceil(total / page_size),
})

/** The response of a list in memory, as `listSchema` describes it: one page of its rows. */
export const listPage = <const Name extends string, Row, Item>(
  name: Name,
  rows: readonly Row[],
  query: Page,
  describe: (row: Row) => Item,
) => {
  const shown = rows.slice((query.page - 1) * query.page_size, query.page * query.page_size)
  const items = { [name]: shown.map(describe) } as Record<Name, Item[]>
  return { ...items, pagination: paginate(query, rows.length) }
}

/** The schema of a list response, such as `{ "tokens": […], "pagination" }`. */
export const listSchema = <const Name extends string, Item extends z.ZodType>(
  id: string | undefined,
  name: Name,
  item: Item,
) => {
  const items = { [name]: z.array(item) } as Record<Name, z.ZodArray<Item>>
  return z.object({ ...items, pagination: Pagination }).meta(id === undefined ? {} : { id })
}

/** As `listSchema`, for a list with cursor pagination (`afterQuery`). */
export const longListSchema = <const Name extends string, Item extends z.ZodType>(name: Name, item: Item) =>
  listSchema(undefined, name, item).extend({ next: Next })

/**
 * The query parameter `after` of a list: a cursor, taken from `next` of an earlier response. It stays valid while rows
 * are added and removed. With it, `page` is ignored.
 */
export const afterQuery = <Position>(position: z.ZodType<Position>) => ({
  after: z
    .string('must be given once')
    .transform((text, context) => {
      try {
        return position.parse(JSON.parse(Buffer.from(text, 'base64url').toString()))
      } catch {
        context.addIssue('must be the "next" of an earlier response')
        return z.NEVER
      }
    })
    .optional()
    .meta({ type: 'string', description: 'the `next` of the page before' }),
})

/** The cursor `next` of a list response, for `afterQuery`; null at the end. */
export const Next = z
  .nullable(z.string())
  .meta({ description: 'send it as `after` for the following rows; null: there are none', examples: [null] })

/** The cursor `next` for a position, and null at the end (`position` undefined). Sets `Link`. */
export const nextOf = (request: FastifyRequest, reply: FastifyReply, position: unknown) =>
  position === undefined ? null : linkNext(request, reply, Buffer.from(JSON.stringify(position)).toString('base64url'))

/**
 * Sets `Link` (RFC 8288) to the rows after a cursor, and returns the cursor. The link is a path, which clients may append to
 * the base URL: many do not resolve references.
 */
export function linkNext(request: FastifyRequest, reply: FastifyReply, next: string): string {
  const url = new URL(request.url, 'http://service')
  url.searchParams.delete('page')
  url.searchParams.set('after', next)
  reply.header('link', `<${url.pathname}${url.search}>; rel="next"`)
  return next
}

/** The `pagination` and `next` of a list response with cursor pagination. */
export const pageOf = (
  request: FastifyRequest<{ Querystring: Page }>,
  reply: FastifyReply,
  { total, next }: { total: number; next?: unknown },
) => ({ pagination: paginate(request.query, total), next: nextOf(request, reply, next) })

/** A query parameter that is `true` or `false`. */
export const booleanQuery = (fallback: boolean, description: string) =>
  z
    .stringbool({ truthy: ['true'], falsy: ['false'], case: 'sensitive', error: 'must be true or false' })
    .default(fallback)
    .meta({ type: 'boolean', description })

/** A query parameter in digits only: not `1e3`, ` 5` and `0x10`, which Number() accepts. */
export const wholeNumber = (min: number, max: number) =>
  z
    .string(`must be a whole number from ${min} to ${max}`)
    .regex(/^[0-9]{1,10}$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be between ${min} and ${max}`)
    .meta({ type: 'integer', minimum: min, maximum: max })
