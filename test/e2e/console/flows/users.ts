import assert from 'node:assert/strict'
import type { Flows } from '../tester.ts'

/** Users: invite, change, remove; one's own password. */
export const userFlows: Flows = {
  'shows the trusts of each service, and removes one': async (tester) => {
    const claims = { repository: 'acme/site' }
    const trust = { name: 'deploy-site', issuer: 'https://ci.example.com', audience: 'files', claims, role: 'editor' }
    const api = await tester.filesApi()
    await api.call('POST', '/api/trusts', { ...trust, folders: ['site/'] })
    await tester.goTo('/trusts')
    await tester.text('repository = acme/site').waitFor()
    await tester.text('No trusts yet').waitFor()
    await tester.checkAccessibility('trusts')
    await tester.button('Remove deploy-site').click()
    await tester.button(/^Remove$/).click()
    await tester.text('deploy-site removed').waitFor()
    assert.deepEqual((await api.call('GET', '/api/trusts')).trusts, [])
  },

  'invites a user, who sets a password, changes it, and is removed': async (tester) => {
    const { page, everything } = tester
    await tester.goTo('/users')
    await tester.text('(you)').waitFor()
    await tester.button('New user').click()
    await page.getByLabel('User name').fill('nora')
    await page.getByLabel('Only these domains').fill('alder-and-finch.com')
    await page.getByLabel('Only these folders').fill('our documents/, site/')
    await page.getByLabel('Changes of records').selectOption('propose')
    await tester.checkAccessibility('new user')
    await tester.picture('user-new')
    await tester.button('Add').click()
    const invite = (await page.locator('[data-secret]').textContent()) ?? ''
    await tester.checkAccessibility('invite')
    await tester.button('Done').click()
    await tester.button('Change nora').waitFor()
    await tester.checkAccessibility('users')
    await tester.picture('users')

    await tester.logOut()
    await tester.button('I have an invite').click()
    await page.getByLabel('Your user name').fill('nora')
    await page.getByLabel('Invite code').fill(invite)
    await page.getByLabel('Your new password').fill('words of nora')
    await tester.checkAccessibility('invite accepted')
    tester.expectFailure(/api\/auth\/password/) // The users are shared: only one service takes the code.
    await tester.button('Set the password').click()
    await tester.button(/^nora$/).click()
    await tester.button('Change password').click()
    await page.getByLabel('Current password').fill('mistyped words')
    await page.getByLabel('New password', { exact: true }).fill('other words of nora')
    await page.getByLabel('New password, again').fill('mistyped words')
    await tester.checkAccessibility('change password')
    await tester.button(/^Change$/).click()
    await tester.text('The new passwords differ').waitFor()
    await page.getByLabel('New password, again').fill('other words of nora')
    await tester.button(/^Change$/).click()
    await tester.text('The username or the password is wrong').waitFor()
    await page.getByLabel('Current password').fill('words of nora')
    await tester.button(/^Change$/).click()
    await tester.text('Your password is changed').waitFor()
    assert.deepEqual(await tester.statusOf(await tester.tokens()), [200, 200])
    assert.equal(await page.getByRole('link', { name: 'Users' }).count(), 0)
    await tester.goTo('/domains')
    await tester.text('alder-and-finch.com').waitFor()
    await page.keyboard.press('Escape')
    await tester.goTo('/domains/alder-and-finch.com')
    await tester.button('Add record').click()
    await page.getByLabel('Name', { exact: true }).fill('wanted')
    await page.locator('#record-address').fill('192.0.2.121')
    await tester.button(/^Add$/).click()
    await tester.button('Review').click()
    await tester.button('Propose').click()
    await tester.text('Proposed for approval').waitFor()
    await tester.text('1 change waiting for an approval').waitFor()
    await tester.picture('zone-proposed')
    await tester.goTo('/changes')
    await tester.button(/^Cancel$/).click()
    await tester.button('Cancel the change').click()
    await page.locator('.chip', { hasText: 'Cancelled' }).waitFor()

    const nora = await tester.domainsApi('nora', 'other words of nora')
    const { domains } = await nora.call('GET', '/api/domains')
    assert.equal(domains.length, 1)
    const { user } = await nora.call('GET', '/api/auth/me')
    assert.equal(user.writes, 'propose')
    assert.deepEqual(user.folders, ['our documents/', 'site/'])

    await page.reload()
    await tester.logOut('nora')
    await tester.logIn()
    await tester.goTo('/users')
    await tester.button('Change nora').click()
    await page.getByLabel('Role').selectOption('viewer')
    const held = Promise.withResolvers<void>()
    await page.route(`${everything.files}/api/users?*`, async (route) => {
      await held.promise
      await route.continue()
    })
    await tester.button('Save').click()
    await tester.text('nora changed').waitFor()
    await page.locator('tr', { hasText: 'nora' }).locator('.chip', { hasText: 'viewer' }).waitFor()
    assert.equal(await tester.button('New password nora').count(), 1)
    held.resolve()
    assert.equal((await nora.call('GET', '/api/auth/me')).user.role, 'viewer')
    await tester.button('New password nora').click()
    await tester.checkAccessibility('new password for a user')
    await tester.button('Make an invite').click()
    const next = (await page.locator('[data-secret]').textContent()) ?? ''
    const json = { username: 'nora', invite: next, new: 'third words of nora' }
    await nora.call('POST', '/api/auth/password', json)
    await assert.rejects(() => nora.call('GET', '/api/domains'))
    await tester.button('Done').click()
    await tester.domainsApi('nora', 'third words of nora')
    await tester.button('Remove nora').click()
    await tester.button(/^Remove$/).click()
    await tester.text('nora removed').waitFor()
    await assert.rejects(() => tester.domainsApi('nora', 'third words of nora'))
  },

  'keeps limits that nobody edited, also a folder with a comma in its name': async (tester) => {
    const { page } = tester
    const api = await tester.filesApi()
    const folders = ['minutes, drafts/', 'site/']
    await api.call('POST', '/api/users', { username: 'omar', role: 'viewer', folders })
    const omar = async () => {
      const { users } = await api.call('GET', '/api/users')
      return users.find(({ username }: { username: string }) => username === 'omar')
    }
    await tester.goTo('/users')
    await tester.button('Change omar').click()
    await page.getByLabel('Role').selectOption('editor')
    await tester.button('Save').click()
    await page.locator('tr', { hasText: 'omar' }).locator('.chip', { hasText: 'editor' }).waitFor()
    assert.deepEqual((await omar()).folders, folders)
    await tester.button('Change omar').click()
    await page.getByLabel('Only these folders').fill('site/')
    await tester.button('Save').click()
    await page.locator('tr', { hasText: 'minutes, drafts' }).waitFor({ state: 'detached' })
    assert.deepEqual((await omar()).folders, ['site/'])
    await api.call('DELETE', '/api/users/omar')
  },
}
