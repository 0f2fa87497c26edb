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
    await page.getByLabel('Current password').fill('mistyped words')
    await page.getByLabel('New password', { exact: true }).fill('other words of nora')
    await page.getByLabel('New password, again').fill('other words of nora')
    await tester.checkAccessibility('change password')
    await tester.button(/^Change$/).click()
    await tester.text('The username or the password is wrong').waitFor()
    await page.getByLabel('Current password').fill('words of nora')
    await tester.button(/^Change$/).click()
    await tester.text('Your password is changed').waitFor()
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
