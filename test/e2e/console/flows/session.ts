import assert from 'node:assert/strict'
import { type Flows, manageUsers, type Tester } from '../tester.ts'

/** Logs in at the provider. */
async function signOn(tester: Tester, account: string) {
  const { page } = tester
  // The provider's own pages want a font from elsewhere.
  tester.expectFailure(/fonts\.googleapis\.com/)
  await page.route('https://fonts.googleapis.com/**', (route) => route.abort())
  await tester.button('Continue with Test ID').click()
  await page.locator('input[name=login]').fill(account)
  await page.locator('input[name=password]').fill('any')
  await page.keyboard.press('Enter')
  await tester.button('Continue').click()
}

/** Logins: refused, ended, limited, and without a network. */
export const sessionFlows: Flows = {
  'asks again when a login has ended, and keeps what was typed': async (tester) => {
    const { page, everything } = tester
    tester.expectFailure(/status of 401/)
    await manageUsers(everything, ['add', 'petra', '--role', 'editor'], 'first-password')
    await tester.logOut()
    await tester.logIn('petra', 'first-password')
    await tester.goTo('/domains/alder-and-finch.com')
    await tester.button('Add record').click()
    await page.locator('#record-name').fill('kept')
    await page.locator('#record-address').fill('192.0.2.91')
    await page.keyboard.press('Enter')
    await tester.text('1 change not applied yet').waitFor()

    await manageUsers(everything, ['passwd', 'petra'], 'second-password')
    await tester.button('Review').click()
    await tester.text('Log in again').waitFor()
    await tester.checkAccessibility('log in again')
    await tester.picture('log-in-again')
    // The password has the focus: it is typed right away.
    await page.locator('#field-password:focus').waitFor()
    await page.keyboard.type('second-password')
    await page.keyboard.press('Enter')
    await tester.text('1 added').waitFor()
    await tester.button('Apply').click()
    await tester.text('Applied and verified').waitFor()
  },

  'says why a login is refused': async (tester) => {
    const { page } = tester
    tester.expectFailure(/status of 401/)
    await tester.button('admin').click()
    await tester.checkAccessibility('account')
    await tester.picture('account')
    await tester.endLogin()
    await page.getByLabel('User name').fill('admin')
    await page.getByLabel('Password').fill('wrong-password')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    await tester.checkAccessibility('login refused')
    await page.locator('#field-password:focus').waitFor()
    assert.equal(await page.getByRole('navigation', { name: 'Main', exact: true }).count(), 0)
  },

  'offers a viewer nothing that changes anything': async (tester) => {
    const { page, everything } = tester
    await manageUsers(everything, ['add', 'vera', '--role', 'viewer'], 'password-of-vera')
    await tester.logOut()
    await tester.logIn('vera', 'password-of-vera')
    await tester.goTo('/domains/alder-and-finch.com')
    await tester.text('Mail handling').waitFor()
    assert.equal(await tester.button('Add record').count(), 0)
    assert.equal(await tester.button(/^Delete/).count(), 0)
    assert.equal(await page.getByRole('link', { name: 'Registrar' }).count(), 0)
    await tester.goTo('/files/')
    assert.equal(await tester.button('Upload files').count(), 0)
  },

  'stays logged in at the same address after a reload, and ends the token at logout': async (tester) => {
    const { page, everything } = tester
    await tester.goTo('/domains/alder-and-finch.com?tab=registration')
    await page.reload()
    await tester.text('Nameservers').waitFor()
    const stored = await page.evaluate<[number, string[], string]>(
      '[localStorage.length, Object.keys(sessionStorage), document.cookie]',
    )
    assert.deepEqual(stored, [0, ['logins'], ''])
    const tokens = await tester.tokens()
    assert.deepEqual(await tester.statusOf(tokens), [200, 200])
    const ended = [everything.domains, everything.files].map((service) =>
      page.waitForResponse((response) => response.url().startsWith(`${service}/api/auth/logout`)),
    )
    await tester.logOut()
    await Promise.all(ended)
    assert.deepEqual(await tester.statusOf(tokens), [401, 401])
    await page.reload()
    await page.getByLabel('User name').waitFor()
  },

  'keeps a draft over a reload, asks before a logout loses it, and undoes a discard': async (tester) => {
    const { page } = tester
    const zone = '/domains/amberworks.com'
    await tester.goTo(zone)
    await tester
      .button(/^Delete/)
      .first()
      .click()
    await tester.text('1 change not applied yet').waitFor()
    await page.reload()
    await tester.text('1 change not applied yet').waitFor()
    await tester.button('Discard').click()
    await tester.text('Draft discarded').waitFor()
    await tester.button('Undo').last().click()
    await tester.text('1 change not applied yet').waitFor()
    await tester.logOut()
    await tester.text('Log out and lose your draft?').waitFor()
    await tester.checkAccessibility('logout with a draft')
    await page.keyboard.press('Escape')
    await tester.text('1 change not applied yet').waitFor()
    await tester.logOut()
    await page
      .getByRole('dialog', { name: /lose your draft/ })
      .getByRole('button', { name: 'Log out' })
      .click()
    await tester.logIn()
    await tester.goTo(zone)
    await tester.text('Mail handling').waitFor()
    assert.equal(await tester.text('not applied yet').count(), 0)
  },

  'keeps a record that is half typed over other views and a reload': async (tester) => {
    const { page } = tester
    const zone = '/domains/emberworks.com'
    const name = page.getByLabel('Name', { exact: true })
    await tester.goTo(zone)
    await tester.button('Add record').click()
    await name.fill('half')
    await page.getByRole('link', { name: 'History', exact: true }).click()
    await page.getByRole('link', { name: 'Records', exact: true }).click()
    await name.waitFor()
    await tester.goTo('/changes')
    await page.goBack()
    await name.waitFor()
    await page.reload()
    await name.waitFor()
    assert.equal(await name.inputValue(), 'half')
    await page.locator('record-form').getByRole('button', { name: 'Cancel' }).click()
    await name.waitFor({ state: 'detached' })
    await page.reload()
    await tester.button('Add record').waitFor()
    assert.equal(await name.count(), 0)
  },

  'ends all logins of a person everywhere, and their drafts here': async (tester) => {
    const { page, everything } = tester
    await manageUsers(everything, ['add', 'edda', '--role', 'editor'], 'password-of-edda')
    await using other = await tester.openAnother()
    tester.expectFailure(/logout\?everywhere/) // The services share their users: the first has ended both.
    other.expectFailure(/status of 401/)
    for (const each of [tester, other]) {
      if (each === tester) await tester.logOut()
      await each.logIn('edda', 'password-of-edda')
      await each.goTo('/domains/amberworks.com')
    }
    await tester
      .button(/^Delete/)
      .first()
      .click()
    await tester.button('edda').click()
    await tester.button('Log out everywhere').click()
    await tester.text('They are lost').waitFor()
    await tester.checkAccessibility('log out everywhere')
    await tester.picture('log-out-everywhere')
    await tester.button('End all logins').click()
    await page.getByLabel('User name').waitFor()
    assert.equal(await page.evaluate('sessionStorage.length'), 0)

    // One form renews the logins at both services.
    await other.page.evaluate("location.hash = '/changes'")
    const again = other.page.getByRole('dialog', { name: 'Log in again' })
    await again.getByLabel('Password').fill('password-of-edda')
    await other.page.keyboard.press('Enter')
    await again.waitFor({ state: 'detached' })
    for (const address of ['/domains/amberworks.com', '/files/']) {
      await other.goTo(address)
      assert.equal(await again.count(), 0)
    }
    await tester.logIn('edda', 'password-of-edda')
    other.checkComplaints()
  },

  'logs in at both services by single sign-on, and stays logged in': async (tester) => {
    const { page, everything } = tester
    // As with PASSWORD_LOGIN=false.
    await page.route('**/api/auth/methods', async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, json: { ...(await response.json()), password: false } })
    })
    await tester.goTo('/versions')
    await tester.logOut()
    await tester.button('Continue with Test ID').waitFor()
    assert.equal(await page.getByLabel('Password').count(), 0)
    await tester.checkAccessibility('single sign-on')
    await tester.picture('single-sign-on')
    await signOn(tester, 's1')
    await page.getByRole('heading', { name: 'Versions', exact: true }).waitFor()
    assert.equal(new URL(page.url()).origin, everything.console)
    assert.equal(new URL(page.url()).search, '')
    await tester.goTo('/domains')
    await tester.text('alder-and-finch.com').waitFor()
    await page.reload()
    await tester.text('alder-and-finch.com').waitFor()
    await tester.button('oidc:sam').waitFor()
  },

  'opens by single sign-on what a person may use, and says that the other service refuses': async (tester) => {
    const { page } = tester
    tester.expectFailure(/status of 403/)
    await (await tester.filesApi()).upload('wendy/own.txt', 'own')
    await tester.goTo('/files/wendy/')
    await tester.logOut()
    await signOn(tester, 'w1')
    await tester.text('own.txt').waitFor()
    await tester.button('oidc:wendy').waitFor()
    await tester.goTo('/domains')
    await page.getByRole('heading', { name: 'Log in to Domains' }).waitFor()

    await manageUsers(tester.everything, ['remove', 'oidc:wendy'], '')
    tester.expectFailure(/status of 401/)
    await page.evaluate("location.hash = '/files/wendy/'")
    const again = page.getByRole('dialog', { name: 'Log in again' })
    await again.getByRole('button', { name: 'Continue with Test ID' }).click()
    await tester.text('oidc:wendy was removed').waitFor()
  },

  'is moved through by the keyboard': async (tester) => {
    const { page } = tester
    await tester.goTo('/domains')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
    await tester.checkAccessibility('keys')
    const characterKeys = page.getByRole('checkbox', { name: 'Keys of one character work' })
    await characterKeys.uncheck()
    await page.keyboard.press('Escape')
    await page.keyboard.press('?')
    assert.equal(await page.getByRole('dialog').count(), 0)
    await page.getByRole('button', { name: 'Keyboard' }).click()
    await characterKeys.check()
    await page.keyboard.press('Escape')
    await page.keyboard.press('/')
    await page.keyboard.type('alder')
    await page.locator('.domains-table tbody tr').nth(1).waitFor({ state: 'detached' })
    await page.keyboard.press('ArrowDown')
    assert.equal(await page.evaluate('document.activeElement?.textContent'), 'alder-and-finch.com')
    await page.keyboard.press('/')
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await page.locator('.domains-table tbody tr').nth(1).waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'ambercabin.com' }).waitFor()
  },

  'says that the computer is offline, and recovers': async (tester) => {
    const { page } = tester
    tester.expectFailure(/ERR_INTERNET_DISCONNECTED/)
    await page.context().setOffline(true)
    await tester.text('You are offline').waitFor()
    await page.context().setOffline(false)
    await tester.text('You are offline').waitFor({ state: 'detached' })
  },

  'leads from a page and a tab that there are not to those that there are': async (tester) => {
    const { page } = tester
    await tester.goTo('/domains?page=999')
    await page.waitForURL(/#\/domains\?page=1$/)
    await page.locator('.domains-table').getByText('alder-and-finch.com').waitFor()
    await tester.goTo('/changes?status=rejected&page=7') // None at all: as before.
    await tester.text('No changes here').waitFor()
    await tester.goTo('/domains/alder-and-finch.com?tab=nonsense')
    await page.waitForURL(/#\/domains\/alder-and-finch\.com$/)
    await page.getByRole('link', { name: 'Registration' }).click()
    await page.waitForFunction("document.title.startsWith('alder-and-finch.com, registration')")
  },
}
