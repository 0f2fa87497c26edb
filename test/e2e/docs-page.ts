import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEverything } from '../support/everything.ts'
import { installChromium, launchChromium } from './support/chromium.ts'
import { DocsPage } from './support/docs-page.ts'
import { startPrefixProxy } from './support/prefix-proxy.ts'

// `npm run test:browser`: drives the /docs page of each service in Chromium.

const pictures = process.env.PICTURES ?? mkdtempSync(join(tmpdir(), 'docs-pictures-'))
mkdirSync(pictures, { recursive: true })

installChromium()
await using everything = await startEverything()
const browser = await launchChromium()
try {
  await tryPage('domain-service', everything.domains, async (page) => {
    const list = await page.execute('listDomains', { page_size: '3' })
    assert.equal(list.status, 200)
    assert.equal(list.body.domains.length, 3)
    const zone = await page.execute('getZone')
    assert.equal(zone.status, 200)
    const added = await page.execute('addRecord')
    assert.deepEqual([added.status, added.body.name], [201, 'hello'])
  })
  // Nothing may leave the prefix.
  await using proxy = await startPrefixProxy(everything.files, '/files')
  await tryPage('static-service', proxy.url, async (page) => {
    const file = join(everything.dataDir, 'hello.txt')
    writeFileSync(file, 'Hello, files\n')
    const uploaded = await page.execute('uploadFile', {}, file)
    assert.deepEqual([uploaded.status, uploaded.body.path], [201, 'notes/hello.txt'])
    const batch = await page.execute('uploadFiles', {}, file)
    assert.deepEqual([batch.status, batch.body.files.length], [201, 1])
    const described = await page.execute('getFile')
    assert.deepEqual([described.status, described.body.size], [200, 13])
    const content = await page.execute('getContent')
    assert.equal(content.status, 200)
  })
} finally {
  await browser.close()
}
process.stdout.write(`the docs pages work; pictures are in ${pictures}\n`)

async function tryPage(name: string, url: string, attempt: (page: DocsPage) => Promise<void>) {
  await using page = await DocsPage.open(browser, url)
  await page.picture(pictures, name)
  await page.checkOperations()
  await page.logIn('admin', everything.password)
  await attempt(page)
  await page.picture(pictures, `${name}-tried`)
  page.check()
}
