import assert from 'node:assert/strict'
import { type Flows, manageUsers } from '../tester.ts'

const domain = 'meadowpost.com'

/** Who changed what, and back. */
export const historyFlows: Flows = {
  'approves what somebody proposes, after seeing what it changes': async (tester) => {
    const { page, everything } = tester
    await manageUsers(everything, ['add', 'paula', '--role', 'editor'], 'password-of-paula')
    const paula = await tester.domainsApi('paula', 'password-of-paula')
    await paula.call('POST', '/api/domains/amberworks.com/dns/hosts/A?propose=true', {
      name: 'proposed',
      address: '192.0.2.58',
    })
    await tester.goTo('/changes?domain=amberworks.com&status=proposed')
    await tester.button('Review').click()
    await tester.text('192.0.2.58').waitFor()
    await tester.checkAccessibility('proposal')
    await tester.picture('proposal')
    await page.getByLabel('Reason').fill('mistyped')
    await page.keyboard.press('Enter') // Whoever writes why it is rejected does not approve it.
    assert.equal(await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).isDisabled(), true)
    await page.getByLabel('Reason').fill('')
    await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click()
    await tester.text('Approved: it is queued').waitFor()
    await tester.text('No changes here').waitFor()
    const focused = await page.evaluate('document.activeElement?.closest("main") !== null')
    assert.ok(focused, 'the focus is in the content')
    await tester.goTo('/changes?domain=amberworks.com')
    await tester.text('approved by admin').waitFor()
  },

  'an address with a tab in its path leads to the tab': async (tester) => {
    const { page } = tester
    await tester.goTo(`/domains/${domain}/history`)
    await page.waitForURL(/#\/domains\/meadowpost\.com\?tab=history$/)
    assert.match(await page.title(), /^meadowpost\.com, history/)
  },

  'finds out who deleted www, and restores it': async (tester) => {
    const { page, everything } = tester
    const admin = await tester.domainsApi()
    await admin.call('POST', `/api/domains/${domain}/dns/hosts/A`, {
      name: 'www',
      address: '192.0.2.51',
    })
    await manageUsers(everything, ['add', 'oliver', '--role', 'editor'], 'password-of-oliver')
    const oliver = await tester.domainsApi('oliver', 'password-of-oliver')
    await oliver.removeRecords(domain, 'www')
    await admin.call('POST', `/api/domains/${domain}/dns/hosts/A`, {
      name: 'later',
      address: '192.0.2.52',
    })

    await tester.goTo(`/domains/${domain}`)
    await page.getByRole('link', { name: 'History' }).click()
    await page.getByLabel('Filter by record or person').fill('www')
    const newest = page.locator('.moment').first()
    await newest.getByText('oliver').waitFor()
    await newest.getByText('1 removed').waitFor()
    assert.match(await page.title(), /^meadowpost\.com, history/)
    await tester.checkAccessibility('history')
    await tester.picture('history')

    await newest.getByRole('link', { name: 'Look at the zone then' }).click()
    await tester.text('192.0.2.51').waitFor()
    await tester.checkAccessibility('zone then')
    await tester.picture('zone-then')
    await tester.button('Take back this change').click()
    await tester.text('1 added').waitFor()
    await tester.button('Apply').click()
    await tester.text('Applied and verified').waitFor()
    const zone = await admin.call('GET', `/api/domains/${domain}/dns/hosts`)
    const names = zone.hosts.map(({ name }: { name: string }) => name)
    assert.ok(names.includes('www') && names.includes('later'), 'later changes stay')
  },

  'restores the whole zone as it was before a change': async (tester) => {
    const { page } = tester
    const admin = await tester.domainsApi()
    const path = '/api/domains/quietharbour.org/dns/hosts'
    await admin.call('POST', `${path}/A`, { name: 'one', address: '192.0.2.61' })
    await admin.call('POST', `${path}/A`, { name: 'two', address: '192.0.2.62' })
    await tester.goTo('/domains/quietharbour.org?tab=history')
    await page.getByRole('link', { name: 'Look at the zone then' }).nth(1).click()
    await tester.button('Restore the zone before it').click()
    await tester.text('2 removed').waitFor()
    await tester.button('Apply').click()
    await tester.text('Applied and verified').waitFor()
    const zone = await admin.call('GET', path)
    const names = zone.hosts.map(({ name }: { name: string }) => name)
    assert.ok(!names.includes('one') && !names.includes('two'))
  },

  'shows the changes of all domains with their state': async (tester) => {
    const admin = await tester.domainsApi()
    await admin.call('POST', '/api/domains/copperkettle.net/dns/hosts/A', {
      name: 'listed',
      address: '192.0.2.71',
    })
    await tester.goTo('/changes')
    const newest = tester.page.locator('.moment').first()
    await newest.getByRole('link', { name: 'copperkettle.net' }).waitFor()
    await newest.getByText('Done').waitFor()
    await newest.getByText('192.0.2.71').waitFor()
    await tester.checkAccessibility('changes')
    await tester.picture('changes')

    const hosts = Array.from({ length: 151 }, (_, at) => ({ name: `h${at}`, type: 'A', address: '192.0.2.72' }))
    await assert.rejects(() => admin.call('PUT', '/api/domains/copperkettle.net/dns/hosts', { hosts }))
    await newest.getByText('must have at most 150 records').waitFor()
    assert.equal(await newest.getByText('when it is sent').count(), 0)
  },
}
