import assert from 'node:assert/strict'
import type { Route } from 'playwright-core'
import { type Flows, manageUsers } from '../tester.ts'

/** Private folders, and links to what is in them. */
export const sharingFlows: Flows = {
  'makes a folder private, shares it by a link, and revokes the link': async (tester) => {
    const { page, everything } = tester
    const api = await tester.filesApi()
    await api.upload('shared/photos/one.txt', 'one')
    const status = async (url: string) => (await fetch(url)).status
    const file = `${everything.files}/static/shared/photos/one.txt`
    assert.equal(await status(file), 200)

    await tester.goTo('/files/shared/photos/')
    await tester.button(/^Share$/).click()
    const refuse = (route: Route) => route.abort('connectionreset')
    await page.route('**/api/access/shared/**', refuse)
    tester.expectFailure(/ERR_CONNECTION_RESET/)
    await page.getByLabel('Private folder').click()
    await tester.text('did not answer').waitFor()
    assert.equal(await page.getByLabel('Private folder').isChecked(), false)
    await page.unroute('**/api/access/shared/**', refuse)
    await page.getByLabel('Private folder').check()
    await page.getByLabel('Private folder').and(page.locator(':checked')).waitFor()
    await tester.text('shared/photos/ is private now').waitFor()
    await page.getByLabel('Link valid for').selectOption('1')
    await page.getByLabel('Downloads').fill('2')
    await tester.button('Make a link').click()
    const link = (await page.locator('[data-secret]').textContent()) ?? ''
    await tester.picture('share-folder')
    await tester.button('Done').click()
    assert.equal(await status(file), 404)
    assert.equal(await status(`${link.replace(/\/$/, '')}/one.txt`), 200)

    // The rule of the closest folder decides.
    await api.call('PUT', '/api/access/shared/', { public: true })
    await tester.button(/^Share$/).click()
    await tester.button('Revoke').waitFor()
    await tester.text('1 download left').waitFor()
    assert.ok(await page.getByLabel('Private folder').isChecked())
    const { links } = await api.call('GET', '/api/links?path=shared/photos/')
    assert.equal(Date.parse(links[0].expires_at) - Date.parse(links[0].created_at), 86_400_000)
    await tester.checkAccessibility('share a folder')
    await tester.button('Revoke').click()
    await tester.text('No links yet').waitFor()
    assert.equal(await status(`${link.replace(/\/$/, '')}/one.txt`), 404)
    await page.keyboard.press('Escape')
    await tester.goTo('/files/shared/photos/one.txt')
    await page.locator('file-details .chip', { hasText: 'private' }).waitFor()
    assert.equal(await tester.button('Copy link').count(), 0) // It would lead nobody to it.
    await tester.checkAccessibility('a private file')
    await tester.picture('file-private')
  },

  'offers an editor links, but not the rule of a folder, which is for admins': async (tester) => {
    const { page, everything } = tester
    await manageUsers(everything, ['add', 'sheila', '--role', 'editor'], 'password-of-sheila')
    await (await tester.filesApi()).upload('team/one.txt', 'one')
    await tester.logOut()
    await tester.logIn('sheila', 'password-of-sheila')

    await tester.goTo('/files/team/')
    await tester.button(/^Share$/).click()
    await tester.text('No links yet').waitFor()
    assert.equal(await page.getByLabel('Private folder').count(), 0)
    tester.expectFailure(/status of 400/)
    await page.getByLabel('Downloads').fill('two')
    await tester.button('Make a link').click()
    await tester.text('Downloads must be a number.').waitFor()
    await page.getByLabel('Downloads').fill('')
    await tester.button('Make a link').click()
    const link = (await page.locator('[data-secret]').textContent()) ?? ''
    assert.equal((await fetch(`${link.replace(/\/$/, '')}/one.txt`)).status, 200)
  },
  'says that files are public since they moved, by folder or one by one, and takes the move back': async (tester) => {
    const { page, everything } = tester
    tester.expectFailure(/status of 404/) // A file whose move is taken back while its details are open.
    const api = await tester.filesApi()
    await api.upload('payroll/2026/may.txt', 'may')
    await api.upload('payroll/2026/notes/june.txt', 'june')
    await api.call('PUT', '/api/access/payroll/2026/', { public: false })
    const status = async (path: string) => (await fetch(`${everything.files}/static/${path}`)).status
    const warning = page.locator('.toast', { hasText: /public now/ })
    const undo = async () => {
      const isBack = page.waitForResponse(/revert$/)
      await warning.getByRole('button', { name: 'Undo' }).click()
      await (await isBack).finished()
    }

    await tester.goTo('/files/')
    await page.getByLabel('Select payroll').check()
    await page.getByRole('region', { name: 'Selection' }).getByRole('button', { name: 'Move' }).click()
    await page.getByLabel('New path').fill('wages')
    await page.keyboard.press('Enter')
    await warning.waitFor()
    assert.equal(await status('wages/2026/may.txt'), 200)
    await tester.checkAccessibility('a move that made files public')
    await tester.picture('moved-public')
    await undo()
    assert.deepEqual([await status('wages/2026/may.txt'), await status('payroll/2026/may.txt')], [404, 404])

    const move = async (from: string, to: string) => {
      await tester.goTo(`/files/${from}`)
      await tester.button('Move').click()
      await page.getByLabel('New path').fill(to)
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: to.split('/').at(-1) ?? '', exact: true }).waitFor()
    }
    await move('payroll/2026/may.txt', 'payroll/2026/notes/april.txt')
    await tester.text(/^Moved$/).waitFor()
    assert.equal(await warning.count(), 0)
    await move('payroll/2026/notes/april.txt', 'payroll/april.txt')
    await warning.waitFor()
    await undo()
    assert.equal(await status('payroll/april.txt'), 404)
  },

  'shows nothing that a link with dots in its path leads to': async (tester) => {
    const { page, everything } = tester
    tester.expectFailure(/status of 400/)
    const api = await tester.filesApi()
    const record = { path: 'payroll.txt', size: 5, content_type: 'text/plain', sha256: '0'.repeat(64), public: true }
    await api.upload('dots/record.json', JSON.stringify(record))
    const elsewhere: string[] = []
    page.on('request', (request) => {
      const { origin, pathname } = new URL(request.url())
      if (origin === everything.files && !pathname.startsWith('/api/')) elsewhere.push(pathname)
    })
    for (const address of [
      '..%2F..%2Fstatic%2Fdots%2Frecord.json',
      '..%2F../static/dots/record.json',
      '..%2Fusers%2F',
    ]) {
      await tester.goTo(`/files/${address}`)
      await tester.text(/no path|Invalid path/).waitFor()
      assert.equal(await page.getByText('payroll.txt').count(), 0)
    }
    assert.deepEqual(elsewhere, [])
  },
}
