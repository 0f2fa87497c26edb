import type { AddressInfo } from 'node:net'
import type { App } from '@domains-and-files/http'
import fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { registerGetTreeRoute } from '../../src/routes/trees/get-tree.ts'
import { emptyService } from '../support/empty-service.ts'
import type { Service } from '../support/start.ts'

const Page = z.object({
  files: z.array(z.object({ path: z.string() })),
  next: z.string().nullable(),
})

/** Every page from this address on, by the addresses in `Link`. `between` runs before each but the first. */
async function follow(service: Service, first: string, between = async () => {}) {
  const pages: string[][] = []
  for (let path: string | undefined = first; path; ) {
    if (pages.length > 0) await between()
    const { body, headers } = await service.call('GET', path)
    const { files, next } = Page.parse(body)
    pages.push(files.map((file) => file.path))
    path = /^<(.*)>; rel="next"$/.exec(String(headers.link))?.[1]
    expect(path === undefined).toBe(next === null)
  }
  return pages
}

const sorts = ['path', '-path', 'updated_at', '-updated_at', 'size', '-size']
const filters = ['', '&prefix=d', '&prefix=d&recursive=false', '&search=f1', '&category=code&search=f']

test('following `next` lists what pages by number list, in every order and of every filter', async () => {
  await using service = await emptyService()
  for (let at = 0; at < 24; at += 1) {
    const folder = ['', 'd/', 'd/e/'][at % 3]
    await service.put(`${folder}f${at}.${at % 2 ? 'js' : 'txt'}`, 'x'.repeat(at % 5))
  }

  for (const query of sorts.flatMap((sort) => filters.map((filter) => `sort=${sort}${filter}`))) {
    const whole = await follow(service, `/api/files/?page_size=200&${query}`)
    const pages = await follow(service, `/api/files/?page_size=4&page=1&${query}`)

    expect([query, pages.flat()]).toEqual([query, whole[0]])
    expect(pages.map(({ length }) => length).slice(0, -1)).toEqual(pages.slice(1).map(() => 4))
    expect(pages.at(-1)).not.toEqual([])
  }
})

test('who follows `next` meets every file that stays once, while others come and go', async () => {
  await using service = await emptyService()
  const name = (at: number) => `f${String(at).padStart(2, '0')}`
  for (let at = 0; at < 30; at += 1) await service.put(name(at))
  let turn = 0

  const pages = await follow(service, '/api/files/?page_size=5', async () => {
    await service.call('DELETE', `/api/files/${name(turn)}`)
    await service.put(`e${turn}`)
    turn += 1
  })

  expect(pages.flat()).toEqual(Array.from({ length: 30 }, (_, at) => name(at)))
})

test('a position that is none is refused', async () => {
  await using service = await emptyService()

  const { status, body } = await service.call('GET', '/api/files/?after=abc')

  expect([status, body.errors]).toEqual([
    400,
    [{ path: '/query/after', message: 'must be the "next" of an earlier response' }],
  ])
})

/** The answer about a tree of two files, of which these are left when they are read. */
async function readTree(left: string[], accept: string) {
  const app = fastify()
  onTestFinished(() => app.close())
  app.setValidatorCompiler(() => (value) => ({ value })).setSerializerCompiler(() => JSON.stringify)
  app.addHook('onRequest', async (request) => void Object.assign(request, { caller: {} }))
  const openTree = async () => ({ files: 2, etag: '"1"', change: 1 })
  const filesAt = async () => left.map((path) => ({ path, digest: '0'.repeat(64), size: 1 }))
  // Only what reading the names of a tree needs.
  const dependencies = { catalog: { reads: { openTree, filesAt } } }
  registerGetTreeRoute(app as unknown as App, dependencies as unknown as Parameters<typeof registerGetTreeRoute>[1])
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo // Listens on TCP.
  return fetch(`http://127.0.0.1:${port}/api/trees/docs/`, { headers: { accept } })
}

test('a tree of which files have ended before they are read is cut off', async () => {
  const answer = await readTree(['docs/a'], 'application/json')

  expect(answer.status).toBe(200)
  await expect(answer.text()).rejects.toThrow('terminated')
})

test.each(['application/x-tar', 'application/zip'])(
  'a tree of which nothing is left to read is gone: %s',
  async (accept) => {
    const { status } = await readTree([], accept)

    expect(status).toBe(410)
  },
)
