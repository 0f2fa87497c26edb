import assert from 'node:assert/strict'
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
    await page.getByLabel('Private folder').check()
    await page.getByLabel('Private folder').and(page.locator(':checked')).waitFor()
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
    await tester.text('private').waitFor()
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
    await tester.button('Make a link').click()
    const link = (await page.locator('[data-secret]').textContent()) ?? ''
    assert.equal((await fetch(`${link.replace(/\/$/, '')}/one.txt`)).status, 200)
  },
}
