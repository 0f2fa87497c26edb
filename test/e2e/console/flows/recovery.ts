import assert from 'node:assert/strict'
import { ServiceAlone } from '../service-alone.ts'
import type { Flows } from '../tester.ts'

/** What is seen and typed while a service starts again. */
export const recoveryFlows: Flows = {
  'keeps what was typed and recovers by itself when the service starts again': async (tester) => {
    await using alone = await ServiceAlone.start(tester.everything, 'static-service')
    await using other = await tester.openAnother(alone.everything)
    const { page } = other
    const { password } = alone.everything
    other.expectFailure(/net::ERR_|status of (?:404|50[23])/)
    const api = await other.filesApi('admin', password)
    await api.upload('desk/draft.txt', 'draft')
    await other.logIn('admin', password)
    await other.goTo('/files/desk/draft.txt')
    await other.button('Move').click()
    const field = page.getByLabel('New path')
    await field.fill('desk/final.txt')

    await alone.kill()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByText('did not answer').waitFor()
    assert.equal(await field.inputValue(), 'desk/final.txt')
    await alone.startService()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'final.txt' }).waitFor()
    assert.equal((await api.call('GET', '/api/files/desk/final.txt')).size, 5)

    await alone.kill()
    for (const address of ['/file-changes', '/statistics', '/versions', '/files/']) {
      await page.evaluate(`location.hash = ${JSON.stringify(address)}`)
      await other.text(/did not answer/).waitFor()
      await other.text(/Trying again in/).waitFor()
    }
    await other.checkAccessibility('a service that does not answer')
    await other.picture('service-away')
    await alone.startService()
    await page.locator('.file-list').getByRole('link', { name: 'desk' }).waitFor()
    const failures = page.locator('.notice.warn').first()
    await failures.waitFor({ state: 'detached' })
    for (const [address, what] of [
      ['/file-changes', 'desk/draft.txt'],
      ['/statistics', 'Size by category'],
      ['/versions', 'No versions yet'],
    ] as const) {
      await other.goTo(address)
      await other.text(what).waitFor()
      await failures.waitFor({ state: 'detached' })
    }
    other.checkComplaints()
  },

  'keeps a draft and recovers in every view when the domain service is killed and starts again': async (tester) => {
    await using alone = await ServiceAlone.start(tester.everything, 'domain-service')
    await using other = await tester.openAnother(alone.everything)
    const { page } = other
    const { password } = alone.everything
    const failures = page.locator('.notice.warn').first()
    other.expectFailure(/net::ERR_|status of 50[23]/)
    await other.logIn('admin', password)
    await page.locator('.domains-table').waitFor()
    await alone.kill()
    await other.button('Reload').click()
    await other.text('Trying again in').waitFor()
    await page.locator('.domains-table').waitFor() // What was read stays.
    await other.checkAccessibility('service away')
    await alone.startService()
    await failures.waitFor({ state: 'detached' })

    await other.goTo('/domains/amberfield.com')
    await other
      .button(/^Delete/)
      .first()
      .click()
    await alone.kill()
    await other.button('Review').click()
    await page.getByRole('dialog').getByText('did not answer').waitFor()
    await page.keyboard.press('Escape')
    for (const [address, what] of [
      ['/domains/amberworks.com', 'Mail handling'],
      ['/domains/amberworks.com?tab=history', 'No changes yet'],
      ['/changes', 'No changes here'],
      ['/registrar', 'Calls left'],
      ['/events', 'Show older events'],
    ] as const) {
      await page.evaluate(`location.hash = ${JSON.stringify(address)}`)
      await other.text('Trying again in').waitFor()
      await alone.startService()
      await other.text(what).waitFor()
      await failures.waitFor({ state: 'detached' })
      await alone.kill()
    }
    await alone.startService()
    await other.goTo('/domains/amberfield.com')
    await other.text('1 change not applied yet').waitFor()
    await other.button('Review').click()
    await other.text('1 removed').waitFor()
    other.checkComplaints()
  },
}
