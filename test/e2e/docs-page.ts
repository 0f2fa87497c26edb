import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { startEverything } from '../support/everything.ts'
import { installChromium, launchChromium } from './support/chromium.ts'
import { startPrefixProxy } from './support/prefix-proxy.ts'

// `npm run test:browser`: drives the /docs page of each service in Chromium.

const pictures = process.env.PICTURES ?? mkdtempSync(join(tmpdir(), 'docs-pictures-'))
mkdirSync(pictures, { recursive: true })

installChromium()
await using everything = await startEverything()
const browser = await launchChromium()
try {
  await tryPage(browser, 'domain-service', everything.domains, async (page) => {
    const list = await execute(page, 'listDomains', { page_size: '3' })
    assert.equal(list.status, 200)
    assert.equal(list.body.domains.length, 3)
    const zone = await execute(page, 'getZone')
    assert.equal(zone.status, 200)
    const added = await execute(page, 'addRecord')
    assert.deepEqual([added.status, added.body.name], [201, 'hello'])
  })
  await using proxy = await startPrefixProxy(everything.files, '/files')
  await tryPage(browser, 'static-service', proxy.url, async (page) => {
    const file = join(everything.dataDir, 'hello.txt')
    writeFileSync(file, 'Hello, files\n')
    const uploaded = await execute(page, 'uploadFile', {}, file)
    assert.deepEqual([uploaded.status, uploaded.body.path], [201, 'notes/hello.txt'])
    const batch = await execute(page, 'uploadFiles', {}, file)
    assert.deepEqual([batch.status, batch.body.files.length], [201, 1])
    const described = await execute(page, 'getFile')
    assert.deepEqual([described.status, described.body.size], [200, 13])
    const content = await execute(page, 'getContent')
    assert.equal(content.status, 200)
  })
} finally {
  await browser.close()
}
process.stdout.write(`the docs pages work; pictures are in ${pictures}\n`)

type Try = (page: Page) => Promise<void>

async function tryPage(browser: Browser, name: string, url: string, attempt: Try) {
  const page = await browser.newPage({ viewport: { width: 1200, height: 1400 } })
  const complaints: string[] = []
  const abroad: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('request', (request) => {
    // The docs page of the static service is behind a prefix: nothing may leave it.
    const isHere = request.url().startsWith(`${url}/`) || /^(?:data|blob):/.test(request.url())
    if (!isHere) abroad.push(request.url())
  })
  await page.goto(`${url}/docs/`)
  await page.locator('.opblock').first().waitFor()
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true })

  assert.deepEqual((await operationsShown(page)).sort(), (await operationsTold(url)).sort())
  const before = await execute(page, 'getMe')
  assert.equal(before.status, 401)
  complaints.splice(0) // The browser itself complains of every 401.
  const { password } = everything
  const login = await execute(page, 'logIn', JSON.stringify({ username: 'admin', password }))
  assert.equal(login.status, 200)
  const me = await execute(page, 'getMe')
  assert.deepEqual([me.status, me.body.user], [200, { username: 'admin', role: 'admin' }])
  await attempt(page)
  await page.screenshot({ path: join(pictures, `${name}-tried.png`), fullPage: true })

  assert.deepEqual(complaints, [], 'the console tells no error')
  assert.deepEqual(abroad, [], 'nothing leaves the service')
  await page.close()
}

function operationsShown(page: Page) {
  return page
    .locator('.opblock')
    .evaluateAll((blocks) =>
      blocks.map((block) =>
        ['.opblock-summary-method', '.opblock-summary-path']
          .map((part) => block.querySelector(part)?.textContent?.replaceAll('\u200b', ''))
          .join(' '),
      ),
    )
}

async function operationsTold(url: string): Promise<string[]> {
  const answer = await fetch(`${url}/openapi.json`)
  const { paths }: { paths: Record<string, object> } = JSON.parse(await answer.text())
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  )
}

/** Opens an operation, fills in its form, presses Execute, and returns the response. */
async function execute(
  page: Page,
  operationId: string,
  given: Record<string, string> | string = {},
  file?: string,
) {
  const block = page.locator(`[id$="-${operationId}"]`)
  if (!(await block.getAttribute('class'))?.includes('is-open')) {
    await block.locator('.opblock-summary-control').click()
  }
  const button = block.locator('button.execute')
  await button.waitFor()
  if (typeof given === 'string') await block.locator('textarea.body-param__text').fill(given)
  else {
    for (const [name, value] of Object.entries(given)) {
      await block.locator(`tr[data-param-name="${name}"] input`).fill(value)
    }
  }
  if (file) {
    await block.locator('input[type=file]').first().setInputFiles(file)
  }
  const [answer] = await Promise.all([
    page.waitForResponse((response) => /\/(?:api|static)\//.test(response.url())),
    button.click(),
  ])
  await block.locator('.live-responses-table .response').waitFor()
  const text = await answer.text()
  const isJson = answer.headers()['content-type']?.includes('json')
  return { status: answer.status(), body: isJson ? JSON.parse(text) : text }
}
