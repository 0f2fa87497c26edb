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
}
