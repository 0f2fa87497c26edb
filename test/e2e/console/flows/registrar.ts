import assert from 'node:assert/strict'
import { addFault, clearFaults } from '../registrar-faults.ts'
import type { Flows } from '../tester.ts'

/** The registrar behind the service: slow, refusing, and its budget. */
export const registrarFlows: Flows = {
  'watches a queued change until the registrar has confirmed it': async (tester) => {
    await addFault(tester, { kind: 'slow', command: 'namecheap.domains.dns.sethosts', ms: 600_000 })
    const api = await tester.domainsApi()
    await api.call(
      'POST',
      '/api/domains/brightledger.io/dns/hosts/A',
      { name: 'queued', address: '192.0.2.95' },
      { prefer: 'respond-async' },
    )
    await tester.goTo('/changes?domain=brightledger.io')
    const newest = tester.page.locator('.moment').first()
    await newest.getByText(/Waiting for the registrar|Being sent/).waitFor()
    await tester.picture('changes-queued')
    await clearFaults(tester) // The call goes on.
    await newest.getByText('Done').waitFor()
  },

  'tries again by itself when the registrar is busy': async (tester) => {
    tester.expectFailure(/status of 503/)
    const api = await tester.domainsApi()
    await api.call('GET', '/api/domains/amberfield.com/dns/hosts')
    let isBusy = true
    await tester.page.route('**/api/domains/amberfield.com/dns/hosts', async (route) => {
      if (!isBusy) return route.continue()
      isBusy = false
      return route.fulfill({
        status: 503,
        headers: {
          'access-control-allow-origin': '*',
          'access-control-expose-headers': 'retry-after',
          'content-type': 'application/problem+json',
          'retry-after': '3',
        },
        body: JSON.stringify({
          code: 'registrar_busy',
          detail: 'All calls of this minute are used',
        }),
      })
    })
    await tester.goTo('/domains/amberfield.com')
    await tester.text(/Trying again in/).waitFor()
    await tester.text('As it was last read').waitFor()
    assert.notEqual(await tester.page.locator('tr.record').count(), 0)
    assert.equal(await tester.button(/^Edit/).count(), 0)
    await tester.checkAccessibility('registrar busy')
    await tester.picture('registrar-busy')
    await tester.text('Mail handling').waitFor()
  },

  'says what to do when the registrar refuses the account': async (tester) => {
    const { page } = tester
    let isRefused = true
    // Reads in the background succeed at any time: the state is that of an account whose last call was refused.
    await page.route('**/api/registrar', async (route) => {
      if (!isRefused || route.request().method() !== 'GET') return route.continue()
      const response = await route.fetch()
      const failure = { at: new Date().toISOString(), code: 'registrar_auth' }
      const json = { ...(await response.json()), last_success_at: null, last_failure: failure }
      return route.fulfill({ response, json })
    })
    await tester.goTo('/registrar')
    await tester.text('The registrar refuses the account, the key or the address').waitFor()
    const advice = page.locator('.notice', { hasText: 'whitelisted' })
    assert.match((await advice.textContent()) ?? '', /127\.0\.0\.1/)
    await tester.checkAccessibility('registrar refuses')
    await tester.picture('registrar-refuses')
    isRefused = false
    await tester.text('The registrar answers').waitFor()
  },
}
