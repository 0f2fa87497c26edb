import assert from 'node:assert/strict'
import type { Flows } from '../tester.ts'

/** API tokens: make, copy once, revoke. */
export const tokenFlows: Flows = {
  'makes a token for a router that may change one name only, and revokes it': async (tester) => {
    const { page, everything } = tester
    await tester.goTo('/tokens')
    await tester.button('New token').click()
    await page.getByLabel('Domain', { exact: true }).fill('alder-and-finch.com')
    await page.getByLabel('Host names').fill('home')
    await page.getByLabel('Name of the token').fill('Router at home')
    await tester.checkAccessibility('new token')
    await tester.picture('token-new')
    await tester.button('Make the token').click()
    await tester.text('Copy it now').waitFor()
    const token = (await page.locator('[data-secret]').textContent()) ?? ''
    await tester.text('home.alder-and-finch.com').waitFor()
    await tester.checkAccessibility('token made')
    await tester.picture('token-made')
    assert.match(token, /^ds_[0-9A-Za-z]{38}$/)
    await page.getByRole('button', { name: 'Copy', exact: true }).first().click()
    await tester.text(/copied$/).waitFor()
    assert.equal(await tester.readClipboard(), token)
    await tester.button('Dismiss').click() // Above the dialog, not below it.
    await tester.button('Done').click()

    const send = (name: string) =>
      fetch(`${everything.domains}/api/domains/alder-and-finch.com/dns/hosts/A`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ name, address: '192.0.2.81' }),
      })
    assert.equal((await send('home')).status, 201)
    assert.equal((await send('www2')).status, 403)

    await tester.text('Router at home').waitFor()
    await tester.checkAccessibility('tokens')
    await tester.picture('tokens')
    await tester.button('Revoke Router at home').click()
    await tester.button(/^Revoke$/).click()
    await tester.text('Router at home revoked').waitFor()
    assert.equal((await send('home2')).status, 401)
  },

  'shows every token with all its limits, and which have expired': async (tester) => {
    const api = await tester.filesApi()
    const limits = { role: 'editor', folders: ['docs/'], expires_in: 1 }
    const oldest = await api.call('POST', '/api/tokens', { name: 'Oldest', ...limits })
    const others = Array.from({ length: 60 }, (_, at) => api.call('POST', '/api/tokens', { name: `Device ${at}` }))
    const made = [oldest, ...(await Promise.all(others))]
    const headers = { authorization: `Bearer ${oldest.token}` }
    const url = `${tester.everything.files}/api/auth/me`
    while ((await fetch(url, { headers })).ok);
    await tester.goTo('/tokens')
    const row = tester.page.getByRole('row', { name: /^Oldest/ })
    await row.getByText('docs/', { exact: true }).waitFor()
    await row.getByText('expired').waitFor()
    for (const { id } of made) await api.call('DELETE', `/api/tokens/${id}`)
  },
}
