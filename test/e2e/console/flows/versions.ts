import assert from 'node:assert/strict'
import type { Flows } from '../tester.ts'

/** Versions, and what differs between them. */
export const versionFlows: Flows = {
  'shows what changed since a version, and between two': async (tester) => {
    const { page } = tester
    const api = await tester.filesApi()
    const version = (name: string) => api.call('POST', '/api/versions/', { version: name, changelog: `Of ${name}` })
    await api.upload('site/kept.txt', 'kept')
    await api.upload('site/changed.txt', 'one')
    await version('diff-1')
    await api.upload('site/changed.txt', 'one and two')
    await version('diff-2')
    await api.upload('site/later.txt', 'later')
    await tester.goTo('/versions')
    await page.getByRole('link', { name: 'What changed since diff-1' }).click()
    const main = page.getByRole('main')
    await main.getByText('site/later.txt').waitFor()
    assert.equal(await main.getByText('site/kept.txt').count(), 0)
    await tester.checkAccessibility('what changed since a version')
    await tester.picture('version-diff')
    await main.getByLabel('Compare with').selectOption('diff-2')
    await main.getByText('site/later.txt').waitFor({ state: 'detached' })
    await main.getByText('3 bytes → 11 bytes').waitFor()
  },

  'rolls back to a version after saying what that changes, and takes it back': async (tester) => {
    const { page } = tester
    const api = await tester.filesApi()
    const size = async () => (await api.call('GET', '/api/files/rolled/page.txt')).size
    await api.upload('rolled/page.txt', 'one')
    await api.call('POST', '/api/versions/', { version: 'roll-1', changelog: '' })
    await api.upload('rolled/page.txt', 'one and two')
    await api.upload('rolled/later.txt', 'later')
    await tester.goTo('/versions')
    await tester.button('Roll back to roll-1').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('1 made older · 1 deleted').waitFor()
    await tester.checkAccessibility('roll back')
    await tester.picture('version-roll-back')
    assert.equal(await size(), 11)
    tester.expectFailure(/status of 412/)
    await api.upload('rolled/meanwhile.txt', 'meanwhile')
    await dialog.getByRole('button', { name: 'Restore' }).click()
    await dialog.getByText('Somebody else changed these files meanwhile').waitFor()
    assert.equal(await size(), 11)
    await dialog.getByRole('button', { name: 'Show what changes' }).click()
    await dialog.getByText('1 made older · 2 deleted').waitFor()
    await dialog.getByRole('button', { name: 'Restore' }).click()
    const undo = page.locator('.toast').getByRole('button', { name: 'Undo' })
    await undo.waitFor()
    assert.equal(await size(), 3)
    await undo.click()
    await tester.text('The files are back').waitFor()
    assert.equal(await size(), 11)
  },
}
