import assert from 'node:assert/strict'
import type { Flows } from '../tester.ts'

/** Users: invite, change, remove; one's own password. */
export const userFlows: Flows = {
  'invites a user, who sets a password, changes it, and is removed': async (tester) => {
    const { page } = tester
    await tester.goTo('/users')
    await tester.text('(you)').waitFor()
    await tester.button('New user').click()
    await page.getByLabel('User name').fill('nora')
    await page.getByLabel('Only these domains').fill('alder-and-finch.com')
    await page.getByLabel('Writes of zones').selectOption('propose')
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
    await page.getByLabel('Current password').fill('words of nora')
    await page.getByLabel('New password', { exact: true }).fill('other words of nora')
    await page.getByLabel('New password, again').fill('other words of nora')
    await tester.checkAccessibility('change password')
    await tester.button(/^Change$/).click()
    await tester.text('Your password is changed').waitFor()
    assert.equal(await page.getByRole('link', { name: 'Users' }).count(), 0)
    await tester.goTo('/domains')
    await tester.text('alder-and-finch.com').waitFor()

    const nora = await tester.domainsApi('nora', 'other words of nora')
    const { domains } = await nora.call('GET', '/api/domains')
    assert.equal(domains.length, 1)
    const { user } = await nora.call('GET', '/api/auth/me')
    assert.equal(user.writes, 'propose')
    const admin = await tester.domainsApi()
    await admin.call('DELETE', '/api/users/nora')
    await assert.rejects(() => nora.call('GET', '/api/domains'))
  },
}
