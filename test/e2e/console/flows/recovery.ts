import assert from 'node:assert/strict'
import { FilesAlone } from '../files-alone.ts'
import type { Flows } from '../tester.ts'

/** What is seen and typed while a service starts again. */
export const recoveryFlows: Flows = {
  'keeps what was typed and recovers by itself when the service starts again': async (tester) => {
    await using alone = await FilesAlone.start(tester.everything)
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
    const failures = page.locator('.notice.bad').first()
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
}
