import { z } from 'zod'

export const Pagination = z
  .object({
    page: z.int(),
    page_size: z.int(),
    total_items: z.int(),
    total_pages: z.int(),
  })
  .meta({ id: 'Pagination' })

/** The query parameters of a list: `page` from 1, `page_size` from 1 to `max`. */
export const pageQuery = (fallback: number, max: number) => ({
  page: whole(1, 1_000_000_000).default(1),
  page_size: whole(1, max).default(fallback),
})

/** The `pagination` of a list response. A page past the end is an empty list, not an error. */
export const paginate = (query: { page: number; page_size: number }, total: number) => ({
  page: query.page,
  page_size: query.page_size,
  total_items: total,
  total_pages: Math.ceil(total / query.page_size),
})

// Digits only: rejects `1e3`, ` 5` and `0x10`, which Number() accepts.
const whole = (min: number, max: number) =>
  z
    .string(`must be a whole number from ${min} to ${max}`)
    .regex(/^[0-9]{1,10}$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be between ${min} and ${max}`)
    .meta({ type: 'integer', minimum: min, maximum: max })
