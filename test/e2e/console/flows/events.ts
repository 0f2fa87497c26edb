import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Flows, Tester } from '../tester.ts'

/** What happens, live, and where it is sent. */
export const eventFlows: Flows = {
  'sees at once what others change, in both services': async (tester) => {
    const { page } = tester
    await tester.goTo('/events')
    const api = await tester.domainsApi()
    await api.call('POST', '/api/domains/brightledger.io/dns/hosts/A', {
      name: 'told',
      address: '192.0.2.121',
    })
    const change = page.locator('.moment', { hasText: '192.0.2.121' })
    await change.getByText('zone.changed').waitFor()
    await change.getByRole('link', { name: 'brightledger.io' }).waitFor()
    const files = await tester.filesApi()
    await files.upload('told/of.txt', 'told')
    await page.locator('.moment', { hasText: 'told/of.txt' }).getByText('files.changed').waitFor()
    const request = { path: 'told/of.txt', name: 'Told', downloads: 1 }
    const { url } = await files.call('POST', '/api/links', request)
    await (await fetch(new URL(url, tester.everything.files))).text()
    const usedUp = page.locator('.moment', { hasText: 'link.used_up' })
    await usedUp.getByText('told/of.txt').waitFor()
    assert.equal(await usedUp.getByRole('link').count(), 0)
    await files.upload('told/more.txt', 'told')
    await files.call('POST', '/api/files/delete', { prefix: 'told/' })
    await tester.text('delete told/, 2 files').waitFor()
    await tester.checkAccessibility('events')
    await tester.picture('events')
    await page.getByLabel('Type').selectOption('files.changed')
    await change.waitFor({ state: 'detached' })
  },

  'adds a webhook, sees its secret once, tests it, pauses and deletes it': async (tester) => {
    const { page } = tester
    await using receiver = await startReceiver()
    await tester.goTo('/webhooks')
    await page.getByRole('region', { name: 'Domains' }).getByText('New webhook').click()
    await page.getByLabel('Address').fill(receiver.url)
    await page.getByLabel('Name').fill('Chat of operations')
    await page.getByLabel('zone.changed', { exact: true }).check()
    await tester.checkAccessibility('new webhook')
    await tester.picture('webhook-new')
    await tester.button('Add').last().click()
    const secret = page.locator('[data-secret]')
    await secret.waitFor()
    assert.match((await secret.textContent()) ?? '', /^whsec_/)
    await tester.picture('webhook-secret')
    await tester.button('Done').click()

    await tester.button('Test Chat of operations').click()
    await tester.text('Test delivered: 204').waitFor()
    await tester.button('Deliveries Chat of operations').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('webhook.test').waitFor()
    await tester.checkAccessibility('deliveries')
    await tester.picture('webhook-deliveries')
    const before = receiver.count()
    await dialog.getByText('Send again').click()
    await receiver.untilMoreThan(before)
    await page.keyboard.press('Escape')

    await tester.button('Pause Chat of operations').click()
    await tester.text('paused').waitFor()
    await tester.checkAccessibility('webhooks')
    await tester.picture('webhooks')
    await tester.button('Delete Chat of operations').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await tester.text('No webhooks yet').waitFor()
  },

  'decides what becomes of changes that a restored backup holds': async (tester) => {
    const { page } = tester
    let isHeld = true
    const released: string[] = []
    await page.route(/\/api\/changes/, async (route) => {
      const method = route.request().method()
      if (method === 'POST') {
        isHeld = false
        released.push(route.request().url())
        return answer(route, { count: 1 })
      }
      return answer(route, changesOf({ ...heldChange, ...(isHeld ? { held: true } : {}) }))
    })
    await tester.goTo('/changes')
    await tester.text('Held after a restore').waitFor()
    await tester.checkAccessibility('held changes')
    await tester.picture('changes-held')
    await tester.button('Carry them out').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Carry them out' }).click()
    await page.locator('.moment').getByText('Waiting for the registrar').waitFor()
    assert.match(released.join(), /\/api\/changes\/held\/release$/)
  },

  'shows a change made outside, and takes it back': async (tester) => {
    const { page } = tester
    const domain = 'meadowpost.com'
    const added = { id: 'outside', name: 'outside', type: 'A', address: '192.0.2.131', ttl: 1800 }
    const changes = { added: [added], removed: [], kept: 4 }
    const entry = { ...heldChange, status: 'confirmed', by: null, reason: 'outside', changes }
    const pagination = { page: 1, page_size: 50, total_items: 1, total_pages: 1 }
    await page.route(/dns\/history\?/, (route) => answer(route, { history: [entry], pagination, next: null }))
    await page.route(/dns\/history\/7\/revert/, (route) =>
      answer(route, {
        domain,
        uses_registrar_dns: true,
        email_type: 'NONE',
        hosts: [],
        warnings: [],
        changes: { added: [], removed: [added], kept: 4 },
      }),
    )
    await tester.goTo(`/domains/${domain}?tab=history`)
    const moment = page.locator('.moment')
    await moment.getByText('Somebody outside').waitFor()
    await moment.getByText('changed outside').waitFor()
    await moment.getByRole('button', { name: 'Take back' }).click()
    await tester.text('1 removed').waitFor()
  },
}

const heldChange = {
  id: 7,
  domain: 'meadowpost.com',
  status: 'queued',
  by: 'oliver',
  request_id: 'r-7',
  at: '2027-01-15T09:30:00.000Z',
  created_at: '2027-01-15T09:30:00.000Z',
  sent_at: null,
  ended_at: null,
  changes: null,
  email_type_before: 'NONE',
  email_type_after: 'NONE',
}

const changesOf = (change: object) => ({
  changes: [change],
  pagination: { page: 1, page_size: 50, total_items: 1, total_pages: 1 },
  next: null,
})

type Route = Parameters<Parameters<Tester['page']['route']>[1]>[0]

const answer = (route: Route, json: object) =>
  route.request().method() === 'OPTIONS'
    ? route.continue()
    : route.fulfill({ json, headers: { 'access-control-allow-origin': '*' } })

/** Takes deliveries of webhooks. */
async function startReceiver() {
  let count = 0
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      count += 1
      response.writeHead(204).end()
      server.emit('delivered')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, // It listens on TCP.
    count: () => count,
    untilMoreThan: async (least: number) => {
      while (count <= least) await once(server, 'delivered')
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
