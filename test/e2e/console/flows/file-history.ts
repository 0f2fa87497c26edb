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
    await tester.button('Restore').first().waitFor()
    await tester.checkAccessibility('history of a file')
    await tester.picture('file-history')
    await tester.button('Restore').first().click()
    await tester.text('page.txt is as it was').waitFor()
    assert.equal(await size(), 11)
  },
}
