import assert from 'node:assert/strict'
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chooseFiles, dropOnto } from '../pick-files.ts'
import type { Flows, Tester } from '../tester.ts'

/** Files: upload, find, look at, move, delete. */
export const fileFlows: Flows = {
  'drops a folder of 1,000 files and watches it arrive': async (tester) => {
    const { page } = tester
    const folder = makeFolder(tester, 'thousand', 1000)
    const api = await tester.filesApi()
    const countChanges = async () => (await api.call('GET', '/api/changes')).pagination.total_items
    const before = await countChanges()
    await tester.goTo('/files/')
    await dropOnto(page, '.folder', [folder])
    await tester.text(/Uploading [\d,]+ of 1,000 files/).waitFor()
    await tester.checkAccessibility('uploading')
    await tester.picture('uploading')
    await tester.text('1,000 files uploaded').waitFor({ timeout: 600_000 })
    const { tree } = await api.call('GET', '/api/files/tree?prefix=thousand&depth=0')
    assert.equal(tree.file_count, 1000)
    assert.equal((await countChanges()) - before, 10, 'small files go together')
    await tester.goTo('/files/thousand/')
    await tester.text('1,000 files').waitFor()
    await tester.button('Close the list of uploads').click()
    await tester.goTo('/events')
    await tester.text(/thousand.* and 99 more files/).waitFor()
  },

  'finds a file by three letters of its name': async (tester) => {
    const { page } = tester
    const api = await tester.filesApi()
    await api.upload('deep/down/there/quarterly-zebra-report.txt', 'found\n')
    await api.upload('deep/other.txt', 'other\n')
    await tester.goTo('/files/')
    await page.keyboard.press('/')
    await page.keyboard.type('zeb')
    await page.getByRole('link', { name: /quarterly-zebra-report/ }).click()
    await tester.text('found').waitFor()
    await tester.checkAccessibility('search result')
    await tester.picture('file-found')
  },

  'asks what to do with a name that exists: keep both, replace, skip': async (tester) => {
    const { page } = tester
    tester.expectFailure(/status of 412/)
    const api = await tester.filesApi()
    await api.upload('twice/a.txt', 'old\n')
    const file = join(tester.everything.dataDir, 'a.txt')
    await tester.goTo('/files/twice/')
    for (const [choice, expected] of [
      ['Keep both', ['a (2).txt 21', 'a.txt 4']],
      ['Replace', ['a (2).txt 21', 'a.txt 21']],
      ['Skip', ['a (2).txt 21', 'a.txt 21']],
    ] as const) {
      writeFileSync(file, `${choice}, chosen\n`.padStart(21))
      utimesSync(file, new Date(), new Date(2021, 4, 3, 12, 30))
      await chooseFiles(page, [file])
      const dialog = page.getByRole('dialog', { name: 'This file exists' })
      await dialog.getByText('21 bytes, changed May 3, 2021, 12:30').waitFor()
      const { size, updated_at: at } = await api.call('GET', '/api/files/twice/a.txt')
      const time = new Date(at).toLocaleDateString('en', { dateStyle: 'medium' })
      await dialog.getByText(`${size} bytes, changed ${time}`).waitFor()
      await tester.checkAccessibility('file exists')
      await dialog.getByRole('button', { name: choice }).click()
      await tester.text(/file(?:s)? uploaded/).waitFor()
      await tester.button('Close the list of uploads').click()
      const { files } = await api.call('GET', '/api/files/?prefix=twice')
      const found = files.map(({ name, size }: { name: string; size: number }) => `${name} ${size}`)
      assert.deepEqual(found.sort(), expected)
    }
  },

  'stores the rest of a folder of which some files exist, or are refused': async (tester) => {
    const { page } = tester
    tester.expectFailure(/status of (?:409|412)/)
    const api = await tester.filesApi()
    await api.upload('rest/sub/equal.txt', 'equal\n')
    await api.upload('rest/sub/differs.txt', 'theirs\n')
    await api.upload('rest/sub/also differs.txt', 'theirs\n')
    await api.upload('rest/sub/folder/x', 'x')
    const folder = join(tester.everything.dataDir, 'sub')
    mkdirSync(folder)
    for (const name of ['equal', 'differs', 'also differs', 'new', '100%22 "new"'])
      writeFileSync(join(folder, `${name}.txt`), name === 'equal' ? 'equal\n' : 'mine\n')
    writeFileSync(join(folder, 'folder'), 'a file where a folder is\n')
    await tester.goTo('/files/rest/')
    await dropOnto(page, '.folder', [folder])
    const dialog = page.getByRole('dialog', { name: 'This file exists' })
    await dialog.getByText('Do the same for all').click()
    await dialog.getByRole('button', { name: 'Replace' }).click()
    await tester.text('5 files uploaded, 1 failed').waitFor()
    await tester.text('it is a directory, or below a file').waitFor()
    await tester.checkAccessibility('a group of which one is refused')
    await tester.picture('upload-group-refused')
    const { files } = await api.call('GET', '/api/files/?prefix=rest')
    const found = files.map(({ name, size }: { name: string; size: number }) => `${name} ${size}`)
    const stored = ['100%22 "new".txt 5', 'also differs.txt 5', 'differs.txt 5', 'equal.txt 6']
    assert.deepEqual(found.sort(), [...stored, 'new.txt 5', 'x 1'])
  },

  'cancels an upload and tries it again': async (tester) => {
    const { page } = tester
    tester.expectFailure(/status of 423/) // The service has not noticed yet that the line is closed.
    const file = join(tester.everything.dataDir, 'large.bin')
    writeFileSync(file, Buffer.alloc(20 * 1024 * 1024, 'x'))
    await tester.goTo('/files/')
    const session = await page.context().newCDPSession(page)
    const slow = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 2_000_000 }
    await session.send('Network.emulateNetworkConditions', slow)
    await chooseFiles(page, [file])
    await tester.text(/MB\/s/).waitFor()
    await tester.button('Cancel large.bin').click()
    await session.send('Network.emulateNetworkConditions', { ...slow, uploadThroughput: -1 })
    await tester.text('0 files uploaded, 1 cancelled').waitFor()
    await tester.button('Show each upload').click()
    await tester.button('Retry large.bin').click()
    await tester.text('1 file uploaded').waitFor()
    await tester.button('Close the list of uploads').click()
  },

  'previews text, an image, audio and a PDF without running anything': async (tester) => {
    const { page } = tester
    const api = await tester.filesApi()
    await api.upload('website/index.html', '<script>document.title = "run"</script>')
    await api.upload('website/logo.svg', svg)
    await api.upload('website/jingle.wav', 'RIFF----WAVE')
    await api.upload('website/brochure.pdf', '%PDF-1.4\n%%EOF')
    await api.upload('website/style.css', 'h1 { color: teal }\n'.repeat(60))
    await api.upload('website/prices.json', JSON.stringify({ tea: 3.2, cake: 4.5 }))
    await api.upload('website/photos/harbour.svg', svg)
    await api.upload('website/fonts/README', 'Fonts of the site\n')
    await tester.goTo('/files/website/index.html')
    await page.locator('.preview-text').getByText('<script>').waitFor()
    assert.doesNotMatch(await page.title(), /run/)
    await tester.goTo('/files/website/logo.svg')
    const image = page.locator('.preview-image')
    await image.evaluate('image => image.decode()')
    await tester.checkAccessibility('file with an image')
    await tester.picture('file')
    await tester.goTo('/files/website/jingle.wav')
    await page.locator('file-preview audio').waitFor()
    await tester.goTo('/files/website/brochure.pdf')
    await page.getByRole('link', { name: 'open it in a new tab' }).waitFor()
    assert.equal(await page.locator('iframe').count(), 0)
    await tester.text('SHA-256').waitFor()
    await page.getByRole('button', { name: 'Copy link' }).click()
    assert.match(await tester.readClipboard(), /\/static\/website\/brochure\.pdf$/)
  },

  'renames a file, moves a folder, and deletes several after naming them': async (tester) => {
    const { page } = tester
    const api = await tester.filesApi()
    for (const name of ['one', 'two', 'three', 'drawer/key']) await api.upload(`desk/${name}.txt`, name)
    await tester.goTo('/files/desk/one.txt')
    await tester.button('Move').click()
    await page.locator('datalist option[value="desk/one.txt"]').waitFor({ state: 'attached' })
    await page.getByLabel('New path').fill('desk/first.txt')
    await page.locator('datalist option[value="desk/drawer/one.txt"]').waitFor({ state: 'attached' })
    await tester.checkAccessibility('move')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'first.txt' }).waitFor()
    await tester.button('Close the file').click()

    await page.getByLabel('Select three.txt').check()
    await page.getByLabel('Select two.txt').check()
    await tester.text('2 items selected').waitFor()
    await page.getByRole('region', { name: 'Selection' }).getByRole('button', { name: 'Delete' }).click()
    await tester.text('desk/three.txt').waitFor()
    await tester.checkAccessibility('delete')
    await tester.picture('delete')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await tester.text('2 files deleted').waitFor()

    await tester.goTo('/files/')
    await page.getByLabel('Select desk').check()
    await page.getByRole('region', { name: 'Selection' }).getByRole('button', { name: 'Move' }).click()
    await page.getByLabel('New path').fill('table')
    await page.keyboard.press('Enter')
    await page.locator('.file-list').getByRole('link', { name: 'table' }).waitFor()
    const { files } = await api.call('GET', '/api/files/?search=first.txt')
    assert.equal(files[0].path, 'table/first.txt')
  },

  'creates a version and shows statistics': async (tester) => {
    const { page } = tester
    await (await tester.filesApi()).upload('counted.txt', 'one\n')
    await tester.goTo('/versions')
    await tester.button('New version').click()
    await page.getByLabel('Version', { exact: true }).fill('1.4.0')
    await page.getByLabel('Changelog').fill('A new front page.\n'.repeat(100))
    await tester.checkAccessibility('new version')
    await tester.button('Create').click()
    await page.getByRole('heading', { name: '1.4.0' }).waitFor()
    await tester.text('current').waitFor()
    await tester.button('Show all').click()
    await tester.button('Show all').waitFor({ state: 'detached' })
    await tester.goTo('/statistics')
    await page.getByRole('heading', { name: 'Size by category' }).waitFor()
    await page.getByRole('img', { name: /^Changes a day: today [1-9]/ }).waitFor()
  },
}

const svg =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"><circle cx="5" cy="5" r="4" fill="teal"/></svg>'

function makeFolder({ everything }: Tester, name: string, count: number): string {
  const folder = join(everything.dataDir, name)
  for (let at = 0; at < count; at += 1) {
    const below = join(folder, `part-${at % 10}`)
    mkdirSync(below, { recursive: true })
    writeFileSync(join(below, `file-${at}.txt`), `Content ${at}\n`)
  }
  return folder
}
