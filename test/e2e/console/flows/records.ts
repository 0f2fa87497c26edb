import assert from 'node:assert/strict'
import type { Locator } from 'playwright-core'
import type { Flows, Tester } from '../tester.ts'

const domain = 'alder-and-finch.com'

/** Editing a zone: draft, review, conflict, and back. */
export const recordFlows: Flows = {
  'adds an MX record after seeing what changes, and takes it back': async (tester) => {
    const { page } = tester
    await openZone(tester)
    await tester.button('Add record').click()
    await page.locator('#record-type').selectOption('MX')
    await page.locator('#record-name').fill('@')
    await page.locator('#record-address').fill('192.0.2.1')
    await tester.text('Must be a host name, not an IP address').waitFor()
    await page.locator('#record-address').fill('mx9.example.net')
    await page.locator('#record-mx_pref').fill('30')
    await page.keyboard.press('Enter')
    await tester.text('1 change not applied yet').waitFor()
    await tester.picture('zone-draft')

    await tester.button('Review').click()
    await tester.text('1 added').waitFor()
    await tester.checkAccessibility('review')
    await tester.picture('review')
    await tester.button('Apply').click()
    await tester.text('Applied and verified').waitFor()
    await tester.button('Add record').and(page.locator(':focus')).waitFor() // The keyboard goes on there.
    assert.equal(await hasRecord(tester, 'mx9.example.net'), true)

    await page.getByRole('link', { name: 'History' }).click()
    await tester.button('Take back').first().click()
    await tester.text('1 removed').waitFor()
    await tester.button('Apply').click()
    await tester.text('1 removed').waitFor()
    await page.locator('dialog').waitFor({ state: 'detached' })
    assert.equal(await hasRecord(tester, 'mx9.example.net'), false)
  },

  'names ways to handle mail as the choice does, in a review and a refusal, once': async (tester) => {
    const { page } = tester
    const dialog = page.getByRole('dialog')
    tester.expectFailure(/status of 400/)
    await openZone(tester)
    const handling = page.getByRole('combobox', { name: 'Mail handling' })
    await handling.selectOption('Private Email')
    await tester.button('Review').click()
    await dialog.getByText('Own mail servers (MX) → Private Email').waitFor()
    assert.equal(await dialog.getByText(/email.type/i).count(), 0)
    await page.keyboard.press('Escape')
    await handling.selectOption('Forwarding by the registrar')
    await tester.button('Review').click()
    await dialog
      .getByText('Mail handling must be one of Own mail servers (MX), Private Email, Google Workspace')
      .waitFor()
    await page.keyboard.press('Escape')
    await tester.button('Discard').click()
  },

  'edits in place, deletes, and leaves a draft in place while looking elsewhere': async (tester) => {
    const { page } = tester
    await openZone(tester)
    await tester.button('Edit A @').click()
    await page.locator('#record-address').fill('203.0.113.99')
    await tester.button('Change').click()
    await tester.button('Delete TXT _dmarc').click()
    await tester.text('2 changes not applied yet').waitFor()
    await tester.goTo('/domains')
    await openZone(tester)
    await tester.text('2 changes not applied yet').waitFor()
    await tester.button('Undo: TXT _dmarc').click()
    await tester.text('1 change not applied yet').waitFor()
    await page.keyboard.press('r')
    await tester.text('1 changed').waitFor()
    await page.locator('button:focus', { hasText: 'Apply' }).waitFor()
    await page.keyboard.press('Enter')
    await tester.text('Applied and verified').waitFor()
    assert.equal(await hasRecord(tester, '203.0.113.99'), true)
  },

  'shows what somebody else changed meanwhile, and goes on': async (tester) => {
    tester.expectFailure(/status of 412/)
    await openZone(tester)
    await addAddress(tester, 'mine', '192.0.2.31')
    const api = await tester.domainsApi()
    await api.call('POST', `/api/domains/${domain}/dns/hosts/A`, {
      name: 'theirs',
      address: '192.0.2.32',
    })
    await tester.button('Review').click()
    await tester.text('Somebody else changed this zone meanwhile').waitFor()
    await tester.text('192.0.2.32').waitFor()
    await tester.checkAccessibility('conflict')
    await tester.picture('conflict')
    await tester.button('Go on with the new zone').click()
    await tester.text('1 added').waitFor()
    await tester.button('Apply').click()
    await tester.text('Applied and verified').waitFor()
    assert.equal(await hasRecord(tester, '192.0.2.31'), true)
    assert.equal(await hasRecord(tester, '192.0.2.32'), true)
  },

  'merges an edit of a record that somebody else changed: mine, theirs or both': async (tester) => {
    const { page } = tester
    const domain = 'amberworks.com'
    const path = `/api/domains/${domain}/dns/hosts`
    const api = await tester.domainsApi()
    await api.call('POST', `${path}/A`, { name: 'merged', address: '192.0.2.101' })
    await tester.goTo(`/domains/${domain}`)
    await tester.button('Edit A merged').click()
    await page.locator('#record-address').fill('192.0.2.102')
    // The open form is part of what is reviewed; meanwhile a colleague changes the same record.
    await api.call('PUT', `/api/domains/${domain}/dns/rrsets/merged/A`, {
      values: ['192.0.2.103'],
    })
    await page.keyboard.press('Enter')
    tester.expectFailure(/412/)
    await tester.button('Review').click()
    await tester.text('Both of you changed A merged').waitFor()
    await tester.checkAccessibility('conflict of a record')
    await tester.picture('conflict-record')
    await tester.button('Cancel').click()
    await tester.text('1 change not applied yet').waitFor()
    // The zone and the draft are those from before the review.
    const row = page.locator('tr.record', { hasText: 'merged' })
    await row.getByText('192.0.2.102').waitFor()
    assert.equal(await row.count(), 1)
    assert.equal(await page.getByText('192.0.2.103').count(), 0)
    await tester.button('Review').click()
    await page.getByLabel('Both of you changed A merged').selectOption('mine')
    await tester.button('Go on with the new zone').click()
    await tester.text('1 changed').waitFor()
    await tester.button('Apply').click()
    await tester.text('Applied and verified').waitFor()
    const { hosts } = await api.call('GET', path)
    const merged = hosts.filter(({ name }: { name: string }) => name === 'merged')
    assert.deepEqual(
      merged.map(({ address }: { address: string }) => address),
      ['192.0.2.102'],
    )
  },

  'keeps a record that somebody else changed while it was being deleted': async (tester) => {
    const domain = 'amberworks.com'
    const path = `/api/domains/${domain}/dns`
    const api = await tester.domainsApi()
    await api.call('POST', `${path}/hosts/A`, { name: 'deleted', address: '192.0.2.111' })
    await tester.goTo(`/domains/${domain}`)
    await tester.button('Delete A deleted').click()
    await api.call('PUT', `${path}/rrsets/deleted/A`, { values: ['192.0.2.112'] })
    tester.expectFailure(/412/)
    await tester.button('Review').click()
    const choice = tester.page.getByLabel('Both of you changed A deleted')
    await choice.getByText('Theirs: 192.0.2.112').waitFor({ state: 'attached' })
    assert.equal(await choice.inputValue(), 'theirs')
    await choice.selectOption('Delete it')
    await tester.button('Go on with the new zone').click()
    await tester.text('1 removed').waitFor()
    await tester.button('Apply').click()
    await tester.text('Applied and verified').waitFor()
    assert.equal(await hasRecord(tester, '192.0.2.112', domain), false)
  },

  'joins the quoted parts of a pasted text': async (tester) => {
    const { page } = tester
    await tester.goTo('/domains/amberworks.com')
    await tester.button('Add record').click()
    await page.locator('#record-type').selectOption('TXT')
    await page.locator('#record-name').fill('mail._domainkey')
    await page.locator('#record-address').fill('"v=DKIM1; k=rsa; " "p=MIGf"')
    await tester.button('Remove them and join the parts').click()
    assert.equal(await page.locator('#record-address').inputValue(), 'v=DKIM1; k=rsa; p=MIGf')
  },

  'imports a zone file into the draft': async (tester) => {
    await openZone(tester)
    await tester.button('Import').click()
    await tester.page.getByRole('textbox', { name: 'Zone file' }).fill('imported 600 IN A 192.0.2.41\n')
    await tester.checkAccessibility('import')
    // A slip loses nothing.
    await tester.page.keyboard.press('Escape')
    await tester.text('Discard what you typed?').waitFor()
    await tester.checkAccessibility('discard')
    await tester.page.keyboard.press('Escape')
    await tester.button('Add to the draft').click()
    await tester.text('1 change not applied yet').waitFor()
    await tester.button('Review').click()
    await tester.text('192.0.2.41').waitFor()
    await tester.button('Apply').click()
    await tester.text('Applied and verified').waitFor()
    assert.equal(await hasRecord(tester, '192.0.2.41'), true)
  },

  'reads a zone again when somebody comes back to it, and prints it alone': async (tester) => {
    const { page } = tester
    const zone = 'brightledger.io'
    await tester.goTo(`/domains/${zone}`)
    await tester.text('Read from the registrar just now').waitFor()
    const api = await tester.domainsApi()
    const record = { name: 'colleague', address: '192.0.2.36' }
    await api.call('POST', `/api/domains/${zone}/dns/hosts/A`, record)
    await page.evaluate('{ const { now } = Date; Date.now = () => now() + 120_000 }')
    await page.evaluate("dispatchEvent(new Event('focus'))")
    await page.locator('tr.record', { hasText: 'colleague' }).waitFor()
    assert.equal(await page.title(), `${zone} · Domains and files`)
    await page.emulateMedia({ media: 'print' })
    await page.locator('.sidebar').waitFor({ state: 'hidden' })
    assert.equal(await page.locator('tr.record', { hasText: 'colleague' }).isVisible(), true)
  },

  'filters records by full name and type': async (tester) => {
    const { page } = tester
    await openZone(tester)
    await page.keyboard.press('/')
    await page.keyboard.type(`_dmarc.${domain} txt`)
    await untilCount(page.locator('tr.record'), 1)
    await page.keyboard.press('Escape')
    await page.getByLabel('Filter by type').selectOption('CAA')
    await untilCount(page.locator('tr.record'), 2)
  },
}

export async function untilCount(rows: Locator, count: number) {
  await rows.nth(count - 1).waitFor()
  await rows.nth(count).waitFor({ state: 'detached' })
}

async function openZone(tester: Tester) {
  await tester.goTo(`/domains/${domain}`)
  await tester.text('Mail handling').waitFor()
}

async function addAddress(tester: Tester, name: string, address: string) {
  await tester.button('Add record').click()
  await tester.page.locator('#record-name').fill(name)
  await tester.page.locator('#record-address').fill(address)
  await tester.page.keyboard.press('Enter')
  await tester.text('1 change not applied yet').waitFor()
}

async function hasRecord(tester: Tester, address: string, of = domain): Promise<boolean> {
  const api = await tester.domainsApi()
  const zone = await api.call('GET', `/api/domains/${of}/dns/hosts`)
  return zone.hosts.some((host: { address: string }) => host.address === address)
}
