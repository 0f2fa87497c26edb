import assert from 'node:assert/strict'
import type { Flows } from '../tester.ts'

/** What was replaced or deleted comes back. */
export const fileHistoryFlows: Flows = {
  'has a folder that was deleted by mistake back with one click': async (tester) => {
    const { page } = tester
    const api = await tester.filesApi()
    await api.upload('mistake/docs/a.txt', 'first')
    await api.upload('mistake/docs/b.txt', 'second')
    tester.expectFailure(/status of 404/) // The folder is gone for a moment.
    await tester.goTo('/files/mistake/')
    await page.getByLabel('Select docs').check()
    await tester.button('Delete').click()
    await tester.checkAccessibility('delete a folder')
    const dialog = page.getByRole('dialog')
    await dialog.getByText('It can be undone, here and in File changes').waitFor()
    await page.keyboard.press('Enter') // On Cancel, which has the focus.
    await dialog.waitFor({ state: 'detached' })
    assert.equal((await api.call('GET', '/api/files/?prefix=mistake/')).files.length, 2)
    await page.clock.install()
    await tester.button('Delete').click()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await tester.text('2 files deleted').waitFor()
    const undo = page.getByRole('status').getByRole('button', { name: 'Undo' })
    await undo.focus()
    await page.clock.fastForward(60_000) // Somebody who gets there by the keyboard has time to press it.
    await undo.press('Enter')
    await page.locator('main:focus').waitFor()
    await tester.text('The files are back').waitFor()
    const { files } = await api.call('GET', '/api/files/?prefix=mistake/')
    assert.equal(files.length, 2)
  },

  'undoes the deletion that a message names, although another one followed': async (tester) => {
    const { page } = tester
    const api = await tester.filesApi()
    for (const name of ['first', 'second', 'third']) await api.upload(`deletions/${name}.txt`, name)
    await tester.goTo('/files/deletions/')
    for (const name of ['first', 'second']) {
      await page.getByLabel(`Select ${name}.txt`).check()
      await tester.button('Delete').click()
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
      await page.getByRole('link', { name: `${name}.txt` }).waitFor({ state: 'detached' })
    }
    const undo = page.locator('.toast').getByRole('button', { name: 'Undo' })
    await undo.nth(1).waitFor()
    await undo.first().click()
    await tester.text('The files are back').waitFor()
    const { files } = await api.call('GET', '/api/files/?prefix=deletions/')
    assert.deepEqual(
      files.map(({ name }: { name: string }) => name),
      ['first.txt', 'third.txt'],
    )
    assert.equal(await undo.count(), 1) // It is undone once.
  },

  'takes back one change, and restores an older state of a file': async (tester) => {
    const { page } = tester
    const api = await tester.filesApi()
    await api.upload('states/page.txt', 'one')
    await api.upload('states/page.txt', 'one and two')
    await tester.goTo('/file-changes?prefix=states/')
    await tester
      .button(/^Revert Stored/)
      .first()
      .waitFor()
    await tester.checkAccessibility('file changes')
    await tester.picture('file-changes')
    await tester
      .button(/^Revert Stored/)
      .first()
      .click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revert' }).click()
    await tester.text('The change is taken back').waitFor()
    const size = async () => (await api.call('GET', '/api/files/states/page.txt')).size
    assert.equal(await size(), 3)

    await tester.goTo('/files/states/page.txt')
    const details = page.locator('file-details')
    await details.getByRole('button', { name: 'Restore' }).first().waitFor()
    await tester.checkAccessibility('history of a file')
    await tester.picture('file-history')
    await api.upload('states/page.txt', 'meanwhile')
    tester.expectFailure(/status of 412/)
    await details.getByRole('button', { name: 'Restore' }).first().click()
    await tester.text('Somebody else changed it meanwhile').waitFor()
    assert.equal(await size(), 9)
    await details.getByRole('listitem').nth(3).waitFor()
    await details.getByRole('button', { name: 'Restore' }).nth(1).click()
    await tester.text('page.txt is as it was').waitFor()
    assert.equal(await size(), 11)
  },

  'finds who deleted a file, and restores it': async (tester) => {
    const { page } = tester
    const api = await tester.filesApi()
    await api.upload('wanted/report.txt', 'report')
    await api.call('DELETE', '/api/files/wanted/report.txt')
    await api.upload('wanted/other.txt', 'other')
    tester.expectFailure(/status of 404/)
    await tester.goTo('/file-changes?prefix=wanted/')
    await page.getByLabel('Kind of change').selectOption('delete')
    await tester.button('Revert Deleted wanted/report.txt').waitFor()
    await tester.button('Revert Stored').first().waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'admin' }).click()
    await tester.button('Remove the filter admin').waitFor()
    await tester.checkAccessibility('file changes of one kind')
    await page.getByRole('link', { name: 'wanted/report.txt' }).click()
    await tester.text('There is no file here any more').waitFor()
    await tester.checkAccessibility('a deleted file')
    await tester.picture('file-deleted')
    await page.locator('file-details').getByRole('button', { name: 'Restore' }).click()
    await tester.text('report.txt is as it was').waitFor()
    assert.equal((await api.call('GET', '/api/files/wanted/report.txt')).size, 6)
  },

  'restores a folder to a time after saying what that changes, and takes it back': async (tester) => {
    const { page } = tester
    const api = await tester.filesApi()
    const names = async () => {
      const { files } = await api.call('GET', '/api/files/?prefix=past/')
      return files.map(({ name }: { name: string }) => name).join(' ')
    }
    await api.upload('past/kept.txt', 'kept')
    tester.expectFailure(/status of 404/)
    await tester.goTo('/files/past/')
    await tester.button('Restore to…').click()
    const dialog = page.getByRole('dialog', { name: 'Restore past/' })
    const time = dialog.getByLabel('As it was on')
    await time.fill('2020-01-01T10:00')
    await dialog.getByRole('button', { name: 'Show what changes' }).click()
    await dialog.getByText('There were no files then').waitFor()
    await time.fill(localMinute(Date.now() + 60_000))
    await dialog.getByRole('button', { name: 'Show what changes' }).click()
    await dialog.getByText('The files are already like this').waitFor()
    await tester.checkAccessibility('restore a folder')
    await tester.picture('folder-restore')
    assert.ok(await dialog.getByRole('button', { name: 'Restore' }).isDisabled())
    await page.keyboard.press('Escape')
    assert.equal(await names(), 'kept.txt')
  },
}

/** The value of a field of local time. @param {number} at */
const localMinute = (at: number) => {
  const date = new Date(at)
  return new Date(at - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
