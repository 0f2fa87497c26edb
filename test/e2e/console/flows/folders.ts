import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dropOnto } from '../pick-files.ts'
import type { Flows } from '../tester.ts'

/** Many files at once, and looking from one to the next. */
export const folderFlows: Flows = {
  'moves three files of which one exists as one change: keep both, replace, skip': async (tester) => {
    const { page } = tester
    tester.expectFailure(/status of 40[49]/) // Names that exist; the folder is empty, and gone, in the end.
    const api = await tester.filesApi()
    let requests = 0
    page.on('request', (request) => {
      if (request.method() === 'POST' && request.url().includes('/api/files/move')) requests += 1
    })
    for (const [choice, left, counts] of [
      ['Keep both', ['a.txt 5', 'b (2).txt 5', 'b.txt 1', 'c.txt 5'], [3, 0, 3]],
      ['Replace', ['a.txt 5', 'b.txt 5', 'c.txt 5'], [2, 1, 3]],
      ['Skip', ['a.txt 5', 'b.txt 1', 'c.txt 5'], [2, 0, 2]],
    ] as const) {
      const folder = `bulk/${choice}`
      for (const name of ['a.txt', 'b.txt', 'c.txt']) await api.upload(`${folder}/from/${name}`, 'moved')
      await api.upload(`${folder}/to/b.txt`, '-')
      await tester.goTo(`/files/${folder}/from/`)
      await page.getByLabel('Select a.txt').check()
      await page.getByLabel('Select c.txt').click({ modifiers: ['Shift'] })
      await tester.text('3 items selected').waitFor()
      await tester.button('Move').click()
      await page.getByLabel('To the folder').fill(`${folder}/to/`)
      await page.keyboard.press('Enter')
      const dialog = page.getByRole('dialog', { name: 'This file exists' })
      await dialog.getByText(`${folder}/to/b.txt`).waitFor()
      await tester.checkAccessibility('a name exists where files go')
      await tester.picture('move-exists')
      await dialog.getByRole('button', { name: choice }).click()
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      const { files } = await api.call('GET', `/api/files/?prefix=${encodeURI(folder)}/to`)
      assert.deepEqual(
        files.map(({ name, size }: { name: string; size: number }) => `${name} ${size}`),
        left,
      )
      const path = `/api/changes?action=move&prefix=${encodeURI(folder)}`
      const { changes } = await api.call('GET', path)
      assert.deepEqual(
        changes.map(({ added, replaced, removed }: Counts) => [added, replaced, removed]),
        [counts],
      )
    }
    assert.equal(requests, 6)
  },

  'moves and deletes what is left of a selection of which somebody else deleted a file': async (tester) => {
    const { page } = tester
    tester.expectFailure(/status of 404/)
    const api = await tester.filesApi()
    const folder = 'shared/from'
    for (const name of ['a', 'b', 'c', 'd']) await api.upload(`${folder}/${name}.txt`, name)
    const remove = (name: string) => api.call('POST', '/api/files/delete', { paths: [`${folder}/${name}.txt`] })
    await tester.goTo(`/files/${folder}/`)
    await page.getByLabel('Select a.txt').check()
    await page.getByLabel('Select d.txt').click({ modifiers: ['Shift'] })
    await tester.text('4 items selected').waitFor()
    await remove('b')
    await tester.button('Move').click()
    await page.getByLabel('To the folder').fill('shared/to')
    await page.keyboard.press('Enter')
    await tester.text('Not there any more: b.txt').waitFor()
    await page.getByRole('dialog').waitFor({ state: 'detached' })

    await tester.goTo('/files/shared/to/')
    await page.getByLabel('Select a.txt').check()
    await page.getByLabel('Select d.txt').click({ modifiers: ['Shift'] })
    await tester.text('3 items selected').waitFor()
    await api.call('POST', '/api/files/delete', { paths: ['shared/to/c.txt'] })
    await tester.button('Delete').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await tester.text('Not there any more: c.txt').waitFor()
    await tester.text('2 files deleted').waitFor()
    assert.equal(await page.getByRole('region', { name: 'Selection' }).count(), 0)
  },

  'offers nothing to do with a file that somebody else deleted': async (tester) => {
    const { page } = tester
    tester.expectFailure(/status of 404/)
    const api = await tester.filesApi()
    await api.upload('shared/gone.txt', 'gone')
    await tester.goTo('/files/shared/gone.txt')
    await tester.button('Move').waitFor()
    await api.call('POST', '/api/files/delete', { paths: ['shared/gone.txt'] })
    await page.evaluate("dispatchEvent(new Event('focus'))")
    await page.locator('file-details').getByText('There is no file here any more').waitFor()
    for (const name of ['Copy link', 'Move', 'Delete'])
      assert.equal(await page.locator('file-details').getByText(name, { exact: true }).count(), 0)
    await tester.goTo('/files/shared/never.txt')
    await page.locator('file-details').getByText('No file at shared/never.txt').waitFor()
    assert.equal(await page.locator('file-details').getByRole('alert').count(), 1)
  },

  'keeps the keyboard at what is seen of a file on a phone, and at its row after it': async (tester) => {
    const api = await tester.filesApi()
    for (const name of ['first', 'second']) await api.upload(`phone/${name}.txt`, name)
    await using phone = await tester.openAnother(tester.everything, { width: 360 })
    const { page } = phone
    await phone.logIn()
    await phone.goTo('/files/phone/')
    await page.getByRole('link', { name: 'second.txt' }).press('Enter')
    await page.locator('h2:focus', { hasText: 'second.txt' }).waitFor()
    await page.keyboard.press('Shift+Tab') // What lies below is no place to go.
    assert.equal(await page.locator('folder-contents :focus, .sidebar :focus').count(), 0)
    await page.getByRole('button', { name: 'Previous file' }).press('Enter')
    await page.getByRole('heading', { name: 'first.txt' }).waitFor()
    await page.getByRole('button', { name: 'Previous file' }).and(page.locator(':focus')).waitFor()
    await phone.checkAccessibility('a file on a phone')
    await phone.button('Copy link').click()
    const message = await page.locator('.toast').boundingBox()
    assert.ok(message && message.y + message.height < 100, 'a message is above what can be pressed')
    await page.getByRole('button', { name: 'Next file' }).focus()
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'first.txt' }).and(page.locator(':focus')).waitFor()
    phone.checkComplaints()
  },

  'lets a person who is limited to two folders work in both': async (tester) => {
    const api = await tester.filesApi()
    for (const path of ['limited/docs/seen.txt', 'limited/hidden.txt']) await api.upload(path, '-')
    const user = { username: 'limited', password: 'words of limited', role: 'editor' }
    const folders = ['limited/docs/', 'limited/new/']
    await api.call('POST', '/api/users', { ...user, folders })
    await using other = await tester.openAnother()
    other.expectFailure(/status of 404/) // The second folder holds nothing yet.
    await other.logIn(user.username, user.password)
    await other.goTo('/files/')
    await other.text('seen.txt').waitFor()
    assert.equal(await other.page.getByText('hidden.txt').count(), 0)
    await other.page.getByRole('link', { name: 'limited/new' }).click()
    await other.text('This folder is empty').waitFor()
    await other.checkAccessibility('folders of a limited person')
    await other.picture('folders-limited')
    await other.goTo('/files/limited/docs/')
    await other.button('document 1').waitFor()
    other.expectFailure(/status of 400/)
    await other.goTo('/files/limited/elsewhere/')
    await other.text('must be inside one of your folders').waitFor()
    await other.button('document 1').waitFor({ state: 'detached' })
    for (const view of ['/file-changes', '/statistics']) {
      await other.goTo(view)
      await other.page.getByLabel('Folder', { exact: true }).selectOption('limited/new/')
      await other.text(/No changes here|Nothing to count yet/).waitFor()
    }
    await other.goTo('/users')
    await other.text('This page is for admins').waitFor()
    other.checkComplaints()
  },

  'counts in the categories what lies in the folder and below': async (tester) => {
    const { page } = tester
    const api = await tester.filesApi()
    for (const path of ['one.svg', 'below/two.svg', 'three.txt']) await api.upload(`counts/${path}`, picture)
    await api.upload('elsewhere/four.svg', picture)
    await tester.goTo('/files/counts/')
    const chips = page.getByRole('group', { name: 'Categories' }).getByRole('button')
    await chips.first().waitFor()
    assert.deepEqual((await chips.allInnerTexts()).sort(), ['document\n1', 'image\n2'])
    await tester.goTo('/files/')
    const { categories } = await api.call('GET', '/api/files/categories')
    const all: { category: string; file_count: number }[] = categories
    const images = all.find(({ category }) => category === 'image')?.file_count ?? 0
    assert.ok(images > 2)
    await tester.button(new RegExp(`^image ${images}$`)).waitFor()
  },

  'counts a folder of several pages as people do, forward and backward': async (tester) => {
    const { page } = tester
    const api = await tester.filesApi()
    const parts = Array.from({ length: 205 }, (_, at) => `many/part ${at + 1}.txt`)
    for (const path of parts) await api.upload(path, 'x')
    const shown = page.locator('.file-list [data-row]')
    await tester.goTo('/files/many/')
    await shown.filter({ hasText: 'part 4.txt' }).waitFor()
    assert.deepEqual((await shown.allTextContents()).slice(0, 3), ['part 1.txt', 'part 2.txt', 'part 3.txt'])
    await page.getByRole('button', { name: /^Name/ }).click()
    await shown.filter({ hasText: 'part 203.txt' }).waitFor()
    assert.deepEqual((await shown.allTextContents()).slice(0, 2), ['part 205.txt', 'part 204.txt'])
  },

  'keeps the keyboard at a row that is still loading': async (tester) => {
    const { page } = tester
    const api = await tester.filesApi()
    const names = Array.from({ length: 405 }, (_, at) => `${at + 1}.txt`)
    for (const name of names) await api.upload(`loading/${name}`, name)
    await tester.goTo('/files/loading/?sort=updated_at')
    await page.getByRole('link', { name: '1.txt', exact: true }).focus()
    for (const [key, name] of [
      ['End', '405.txt'],
      ['ArrowUp', '404.txt'],
      ['Home', '1.txt'],
    ] as const) {
      await page.keyboard.press(key)
      await page.locator('.file-list [data-row]:focus', { hasText: name }).waitFor()
    }
  },

  'selects a whole folder, and stays at it when Back closes the question': async (tester) => {
    const { page } = tester
    const api = await tester.filesApi()
    tester.expectFailure(/status of 404/) // The folder is gone in the end.
    for (let at = 1; at <= 12; at += 1) await api.upload(`natural/sub ${at}/part ${at}.txt`, 'x')
    for (const name of ['part 10.txt', 'part 2.txt']) await api.upload(`natural/${name}`, 'x')
    await tester.goTo('/files/')
    await tester.goTo('/files/natural/')
    await page.getByRole('link', { name: 'part 10.txt' }).waitFor()
    const names = await page.locator('.file-list [data-row]').allTextContents()
    assert.deepEqual(names.slice(0, 3), ['sub 1', 'sub 2', 'sub 3'])
    assert.deepEqual(names.slice(-2), ['part 2.txt', 'part 10.txt'])
    assert.match(await page.title(), /^natural · /)
    await page.getByLabel('Select all').click()
    await tester.text('14 items selected').waitFor()
    await tester.checkAccessibility('a whole folder selected')
    await tester.picture('select-all')
    await tester.button('Delete').click()
    const dialog = page.getByRole('dialog', { name: /^Delete/ })
    await dialog.waitFor()
    await tester.checkAccessibility('a question about many files')
    await page.goBack()
    await dialog.waitFor({ state: 'detached' })
    await tester.text('14 items selected').waitFor()
    assert.match(page.url(), /#\/files\/natural\/$/)
    await tester.button('Delete').click()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await tester.text('14 files deleted').waitFor()
  },

  'looks at images as a grid, and goes from one to the next': async (tester) => {
    const { page } = tester
    const api = await tester.filesApi()
    for (const name of ['bay', 'cliff', 'dune']) await api.upload(`album/${name}.svg`, picture)
    await api.upload('album/a name that is much longer than a tile is wide.txt', 'text')
    await tester.goTo('/files/album/')
    await tester.button('Show as pictures').click()
    await page.locator('.tile img').nth(2).waitFor()
    await api.upload('album/another.png', 'no image')
    await page.evaluate("dispatchEvent(new Event('focus'))")
    await page.locator('.tile', { hasText: 'another' }).locator('svg').waitFor()
    await tester.checkAccessibility('a grid')
    await tester.picture('grid')
    await page.getByRole('link', { name: 'bay.svg' }).click()
    await page.getByRole('heading', { name: 'bay.svg' }).waitFor()
    await tester.button('Next file').click()
    await page.getByRole('heading', { name: 'cliff.svg' }).waitFor()
    await page.keyboard.press('ArrowRight')
    await page.getByRole('heading', { name: 'dune.svg' }).waitFor()
    assert.match(await page.title(), /^dune\.svg · /)
    await page.keyboard.press('ArrowRight')
    await tester.text('This is the last file of the list').waitFor()
    await tester.checkAccessibility('the details beside a grid')
    await tester.picture('grid-details')
    await tester.goTo('/files/album/another.png')
    await tester.text('This image cannot be shown').waitFor()
    await tester.goTo('/files/album/bay.svg')
    await page.locator('.preview-image').waitFor()
  },

  'uploads what is dropped beside the list': async (tester) => {
    const { page, everything } = tester
    const file = join(everything.dataDir, 'dropped beside.txt')
    writeFileSync(file, 'dropped')
    await tester.goTo('/files/')
    await dropOnto(page, '.sidebar', [file])
    await tester.text('1 file uploaded').waitFor()
    const api = await tester.filesApi()
    assert.equal((await api.call('GET', '/api/files/dropped%20beside.txt')).size, 7)
  },
}

interface Counts {
  added: number
  replaced: number
  removed: number
}

const picture =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 30"><path fill="teal" d="M0 20 12 6l9 10 6-5 13 13v6H0z"/></svg>'
