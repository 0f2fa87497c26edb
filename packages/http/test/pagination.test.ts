import { expect, test } from 'vitest'
import { z } from 'zod'
import { type App, afterQuery, Next, nextOf, pageQuery } from '../src/index.ts'
import { start } from './support/start.ts'

const Position = z.tuple([z.literal('name'), z.string()])

/** A list of names after a position, two a page. */
async function startList(names: string[]) {
  const querystring = z.strictObject({
    ...pageQuery(2, 10),
    ...afterQuery(Position),
    search: z.string().optional(),
  })
  const service = await start({}, (app: App) => {
    app.get(
      '/names',
      {
        config: { access: 'public' },
        schema: {
          querystring,
          response: { 200: z.object({ names: z.array(z.string()), next: Next }) },
        },
      },
      async (request, reply) => {
        const [, after = ''] = request.query.after ?? []
        const left = names.filter((name) => name > after).sort()
        const page = left.slice(0, request.query.page_size)
        const last = left.length > page.length ? page.at(-1) : undefined
        const next = nextOf(request, reply, last === undefined ? undefined : ['name', last])
        return { names: page, next }
      },
    )
  })
  const get = async (query: string) => {
    const answer = await fetch(`${service.url}/names${query}`)
    return {
      status: answer.status,
      link: answer.headers.get('link'),
      body: Body.parse(await answer.json()),
    }
  }
  return { get, [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() }
}

const Body = z.object({
  names: z.array(z.string()).default([]),
  next: z.string().nullable().default(null),
  errors: z.array(z.object({ path: z.string(), message: z.string() })).default([]),
})

test('following `next` misses and repeats no item, although others come and go', async () => {
  const names = ['a', 'b', 'd', 'e', 'f']
  await using list = await startList(names)

  const first = await list.get('')
  names.splice(0, 2, 'c') // Gone: a, b. New: c.
  const second = await list.get(`?after=${first.body.next}`)
  const third = await list.get(`?after=${second.body.next}`)

  expect(first.body.names).toEqual(['a', 'b'])
  expect(second.body.names).toEqual(['c', 'd'])
  expect(third.body).toMatchObject({ names: ['e', 'f'], next: null })
})

test('`Link` leads to the items that follow, with the same filters', async () => {
  await using list = await startList(['a', 'b', 'c'])

  const { link, body } = await list.get('?page=1&page_size=1&search=%C3%A4%20b')
  const last = await list.get('?page_size=3')

  expect(link).toBe(`</names?page_size=1&search=%C3%A4+b&after=${body.next}>; rel="next"`)
  expect(last.link).toBeNull()
})

test.each([
  ['no position at all', 'abc'],
  ['the position of another list', Buffer.from('["size",1]').toString('base64url')],
])('`after` that is %s is a 400', async (_what, after) => {
  await using list = await startList([])

  const { status, body } = await list.get(`?after=${after}`)

  expect(status).toBe(400)
  expect(body.errors).toEqual([{ path: '/query/after', message: 'must be the "next" of an earlier response' }])
})
