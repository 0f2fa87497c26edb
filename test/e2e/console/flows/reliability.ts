import assert from 'node:assert/strict'
import { holdRegistrar } from '../registrar-faults.ts'
import type { Flows, Tester } from '../tester.ts'

const domain = 'quietharbour.org'
const path = `/api/domains/${domain}/dns/hosts`

/** No work is lost, no view stays stale, and what is shown is true. */
export const reliabilityFlows: Flows = {
  'ends the draft when the write was done, whatever one presses meanwhile': async (tester) => {
    const { page } = tester
    await openForm(tester, 'hurried', '192.0.2.141')
    await page.keyboard.press('Enter')
    await tester.button('Review').click()
    await tester.text('1 added').waitFor()
    const release = await holdRegistrar(tester)
    await tester.button('Apply').click()
    await tester.button('Working…').waitFor()
    await page.getByRole('button', { name: 'Close' }).click()
    // Chromium lets the second one close any dialog.
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await release()
    await tester.text('Applied and verified').waitFor()
    await page.locator('dialog').waitFor({ state: 'detached' })
    await page.getByRole('region', { name: 'Draft' }).waitFor({ state: 'detached' })
    await page.locator('tr.record', { hasText: 'hurried' }).waitFor()
    assert.equal(await page.getByText('The zone changed meanwhile').count(), 0)
    await tester.button('Delete A hurried').click()
    await tester.button('Review').click()
    await tester.text('1 removed').waitFor()
    assert.equal(await page.getByText('Somebody else').count(), 0)
  },

  'keeps what is typed while the filter changes, another row is opened, or Review is pressed': async (tester) => {
    const { page } = tester
    const api = await tester.domainsApi()
    const add = ['typed1', 'typed2'].map((name) => ({ name, type: 'A', address: '192.0.2.142' }))
    await api.call('PATCH', path, { add })
    await tester.goTo(`/domains/${domain}`)
    await tester.button('Edit A typed2').click()
    const address = page.locator('#record-address')
    await address.fill('192.0.2.143')
    await page.getByLabel('Filter records').fill('typed2')
    await page.locator('tr.record').first().waitFor({ state: 'detached' })
    await page.getByLabel('Filter records').fill('typed')
    await page.locator('tr.record', { hasText: 'typed1' }).waitFor()
    assert.equal(await address.inputValue(), '192.0.2.143')
    // A fault stays where it is; what is right goes into the draft.
    await address.fill('192.0.2')
    await tester.button('Edit A typed1').click()
    await tester.text('Must be an IPv4 address').waitFor()
    await address.fill('192.0.2.143')
    await tester.button('Edit A typed1').click()
    await page.locator('tr.updated', { hasText: '192.0.2.143' }).waitFor()
    assert.equal(await address.inputValue(), '192.0.2.142')
    await address.fill('192.0.2.144')
    await tester.button('Review').click()
    await tester.text('2 changed').waitFor()
    await page.locator('.diff').getByText('192.0.2.144').waitFor()
  },

  'shows the registrar’s dates as the same days west of Greenwich': async (tester) => {
    await using west = await tester.openAnother(tester.everything, {
      timezoneId: 'America/Los_Angeles',
    })
    await west.logIn()
    const api = await tester.domainsApi()
    const { created_on, expires_on } = await api.call('GET', `/api/domains/${domain}/info`)
    const days = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeZone: 'UTC' })
    const nameOf = (day: string) => days.format(new Date(day))
    const [created, expires] = [nameOf(created_on), nameOf(expires_on)]
    await west.goTo(`/domains/${domain}?tab=registration`)
    await west.page.locator('dd', { hasText: created }).waitFor()
    await west.page.locator('dd', { hasText: expires }).waitFor()
    await west.goTo(`/domains?search=${domain}`)
    await west.page.locator('td', { hasText: created }).waitFor()
    await west.page.locator(`.expiry[title="${expires}"]`).waitFor()
    west.checkComplaints()
  },

  'counts a change alike in Changes and in the history': async (tester) => {
    const { page } = tester
    const api = await tester.domainsApi()
    const record = { name: 'counted', address: '192.0.2.145' }
    const { id } = await api.call('POST', `${path}/A`, record)
    const add = [{ name: 'counted', type: 'TXT', address: 'one' }]
    await api.call('PATCH', path, { update: [{ id, ttl: 300 }], add })
    for (const view of [`/changes?domain=${domain}`, `/domains/${domain}?tab=history`]) {
      await tester.goTo(view)
      await page.locator('.moment').first().getByText('1 added · 1 changed').waitFor()
    }
  },

  'writes names as people do, and Back closes a dialog before it leaves the view': async (tester) => {
    const { page } = tester
    await tester.goTo('/domains?search=bäckerei')
    await page.locator('.domains-table').getByRole('link', { name: 'bäckerei-könig.de' }).click()
    await page.getByRole('heading', { name: 'bäckerei-könig.de' }).waitFor()
    await tester.text('Mail handling').waitFor()
    await tester.button('Import').click()
    await page.getByRole('dialog').waitFor()
    await page.goBack()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await tester.text('Mail handling').waitFor()
  },

  'takes long names and values on a phone without scrolling sideways': async (tester) => {
    const name = 'a-name-of-many-parts.that-fills.the-line'
    for (const scheme of ['light', 'dark'] as const) {
      await using phone = await tester.openAnother(tester.everything, { scheme, width: 360 })
      await phone.logIn()
      await openForm(phone, name, `${name}.example.net`)
      await phone.checkAccessibility(`form on a phone, ${scheme}`)
      await phone.picture(`record-form-${scheme}-360`)
      assert.ok((await phone.page.evaluate<number>(sidewaysPixels)) <= 0)
      await phone.page.getByLabel('Select all records').check()
      await phone.button('Clear selection').waitFor()
      await phone.checkAccessibility(`all records on a phone, ${scheme}`)
      await phone.picture(`records-selected-${scheme}-360`)
      phone.checkComplaints()
    }
  },

  'has buttons that can be read under the pointer, in both colour schemes': async (tester) => {
    const { page } = tester
    await tester.goTo(`/domains/${domain}`)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await tester.button('Add record').hover()
      const [text, background] = await page.evaluate<[string, string]>(`(async () => {
        const button = document.querySelector('[data-key=n]')
        await Promise.all(button.getAnimations().map(({ finished }) => finished))
        const { color, backgroundColor } = getComputedStyle(button)
        return [color, backgroundColor]
      })()`)
      const contrast = contrastOf(text, background)
      assert.ok(contrast >= 4.5, `${colorScheme}: ${text} on ${background} has ${contrast}`)
    }
  },
}

const sidewaysPixels = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'

async function openForm(tester: Tester, name: string, address: string) {
  await tester.goTo(`/domains/${domain}`)
  await tester.button('Add record').click()
  await tester.page.locator('#record-name').fill(name)
  await tester.page.locator('#record-address').fill(address)
}

/** WCAG 2.2: the contrast ratio of two opaque colours as `rgb(r, g, b)`. */
function contrastOf(...colors: string[]): number {
  const [dark = 0, light = 0] = colors.map(luminanceOf).sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

function luminanceOf(color: string): number {
  const parts = color.match(/\d+/g)?.map((part) => Number(part) / 255) ?? []
  const [red = 0, green = 0, blue = 0] = parts.map((part) =>
    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
  )
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
