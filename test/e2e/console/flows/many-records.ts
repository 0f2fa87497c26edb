import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { holdRegistrar } from '../registrar-faults.ts'
import type { Flows, Tester } from '../tester.ts'
import { untilCount } from './records.ts'

const domain = 'amberworks.com'
const path = `/api/domains/${domain}/dns/hosts`
const dkim = `v=DKIM1; k=rsa; p=${'MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A'.repeat(12)}`

/** Several records at once: selection, import, what is queued, and where the keyboard goes on. */
export const manyRecordFlows: Flows = {
  'sets the TTL of a range of records, and deletes all that match a filter': async (tester) => {
    const { page } = tester
    await addRecords(tester, ['bulk1', 'bulk2', 'bulk3', 'bulk4'])
    await tester.goTo(`/domains/${domain}`)
    await page.getByLabel('Filter records').fill(`bulk ${domain}`)
    await untilCount(page.locator('tr.record'), 4)
    await page.getByLabel('Select A bulk1').click()
    await page.getByLabel('Select A bulk3').click({ modifiers: ['Shift'] })
    await tester.text('3 records selected').waitFor()
    await tester.checkAccessibility('selection')
    await tester.picture('selection')
    await page.getByLabel('TTL of the selected records').selectOption('300')
    await tester.text('3 changes not applied yet').waitFor()
    assert.equal(await page.locator('tr.updated').count(), 3)
    await tester.button('Discard').click()
    await page.getByLabel('Select all records').check()
    await tester.text('4 records selected').waitFor()
    await page.getByRole('region', { name: 'Selection' }).getByText('Delete').click()
    await tester.text('4 changes not applied yet').waitFor()
    await tester.button('Review').click()
    await tester.text('4 removed').waitFor()
    await tester.button('Apply').click()
    await tester.text('Applied and verified').waitFor()
    const { hosts } = await (await tester.domainsApi()).call('GET', path)
    assert.ok(!hosts.some(({ name }: { name: string }) => name.startsWith('bulk')))
  },

  'imports rows of a spreadsheet, names the line that it skips, and adds nothing twice': async (tester) => {
    const { page } = tester
    const rows = `Name\tType\tValue\nsheet\tA\t192.0.2.81\nsheet2\tA\t999.0.2.1\nlong._domainkey\tTXT\t${dkim}`
    tester.expectFailure(/status of 400/)
    await tester.goTo(`/domains/${domain}`)
    await importText(tester, rows)
    await tester.text(/Line 3 .*: sheet2\s+A\s+999\.0\.2\.1/).waitFor()
    await tester.checkAccessibility('import with a skipped line')
    await tester.picture('import-skipped')
    await tester.button('Add the rest to the draft').click()
    await tester.text('2 changes not applied yet').waitFor()
    await page.locator('tr.record', { hasText: 'long._domainkey' }).getByText('characters').waitFor()
    await tester.picture('dkim-folded')
    await importText(tester, rows)
    await tester.button('Add the rest to the draft').click()
    await tester.text('Everything in it is there already').waitFor()
    await tester.text('2 changes not applied yet').waitFor()
  },

  'offers own mail servers where an import has some': async (tester) => {
    const target = 'copperkettle.net'
    tester.expectFailure(/status of 409/)
    await tester.goTo(`/domains/${target}`)
    await tester.text('Mail handling').waitFor()
    await importText(tester, '@ IN MX 10 mx1.example.net.')
    await tester.button('Use own mail servers (MX)').click()
    await tester.text('2 changes not applied yet').waitFor()
  },

  'marks what is queued until the registrar has it': async (tester) => {
    const { page } = tester
    tester.expectFailure(/status of 503/)
    await tester.goTo(`/domains/${domain}`)
    await addByForm(tester, 'patient', '192.0.2.82')
    await refuseOnce(page, /\/dns\/hosts$/)
    await tester.button('Review').click()
    await tester.text('1 added').waitFor()
    const release = await holdRegistrar(tester)
    await tester.button('Apply').click()
    await tester.button('Queue it').click()
    const row = page.locator('tr.record', { hasText: 'patient' })
    await row.getByText('waiting').waitFor()
    await tester.checkAccessibility('queued record')
    await tester.picture('record-waiting')
    await page.getByRole('link', { name: 'see Changes' }).click()
    await page.locator('.moment').first().getByText('192.0.2.82').waitFor()
    await release()
    await page.locator('.moment').first().getByText('Done').waitFor()
    await tester.goTo(`/domains/${domain}`)
    await row.getByText('waiting').waitFor({ state: 'detached' })
    await row.waitFor()
  },

  'searches the records of all domains, opened here or not, and goes to one': async (tester) => {
    const { page } = tester
    await addRecords(tester, ['needle'])
    await tester.goTo('/domains')
    await page.getByLabel('Search domains').fill('needle a 192.0.2')
    await tester.text(/1 record in \d+ zones?, as they were last read/).waitFor()
    await tester.checkAccessibility('found records')
    await tester.picture('found-records')
    await page.getByRole('link', { name: `needle.${domain}` }).click()
    await untilCount(page.locator('tr.record'), 1)
  },

  'goes on where one expects after adding, deleting and Esc': async (tester) => {
    const { page } = tester
    await addRecords(tester, ['focus'])
    await tester.goTo(`/domains/${domain}`)
    await addByForm(tester, 'focus2', '192.0.2.84')
    await untilFocused(page, 'Add record')
    await page.getByRole('status').filter({ hasText: '1 change not applied yet' }).waitFor()
    await page.getByRole('button', { name: 'Edit A focus', exact: true }).click()
    await page.keyboard.press('Escape')
    await untilFocused(page, 'focus.amberworks.com')
    await page.getByRole('button', { name: 'Delete A focus', exact: true }).click()
    await untilFocused(page, 'focus.amberworks.com')
  },
}

async function addRecords(tester: Tester, names: string[]) {
  const api = await tester.domainsApi()
  const add = names.map((name) => ({ name, type: 'A', address: '192.0.2.80' }))
  await api.call('PATCH', path, { add })
}

async function addByForm(tester: Tester, name: string, address: string) {
  await tester.button('Add record').click()
  await tester.page.locator('#record-name').fill(name)
  await tester.page.locator('#record-address').fill(address)
  await tester.page.keyboard.press('Enter')
  await tester.text(/not applied yet/).waitFor()
}

async function importText(tester: Tester, text: string) {
  await tester.button('Import').click()
  await tester.page.getByRole('textbox', { name: 'Zone file' }).fill(text)
  await tester.button('Add to the draft').click()
}

/** The service answers the first write that is no dry run with 503, as when all calls are used. */
async function refuseOnce(page: Page, address: RegExp) {
  let isRefused = false
  await page.route(address, async (route) => {
    if (isRefused || route.request().method() !== 'PATCH') return route.continue()
    isRefused = true
    return route.fulfill({
      status: 503,
      headers: {
        'access-control-allow-origin': '*',
        'content-type': 'application/problem+json',
      },
      body: JSON.stringify({ code: 'registrar_busy', detail: 'All calls are used' }),
    })
  })
}

const untilFocused = (page: Page, text: string) => page.locator(':focus', { hasText: text }).waitFor()
