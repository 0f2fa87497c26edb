import assert from 'node:assert/strict'
import { installChromium, launchChromium } from './support/chromium.ts'
import { DocsPage } from './support/docs-page.ts'
import type { Front } from './support/fronts.ts'
import { password } from './support/services.ts'

// The pages of the services behind a proxy, in Chromium: each by the host names and the prefixes of docs/proxy.

installChromium()

/** Logs in on the docs pages of both services, and calls one operation of each. */
export async function tryDocsPages({ port }: Front) {
  const browser = await launchChromium(port)
  try {
    for (const url of ['https://domains.example.com', 'https://example.com/domains']) {
      await using page = await openDocs(url)
      const list = await page.execute('listDomains', { page_size: '3' })
      assert.deepEqual([list.status, list.body.domains.length], [200, 3])
      page.check()
    }
    for (const url of ['https://files.example.com', 'https://example.com/files']) {
      await using page = await openDocs(url)
      const list = await page.execute('listFiles')
      assert.equal(list.status, 200)
      page.check()
    }
  } finally {
    await browser.close()
  }

  async function openDocs(url: string) {
    const page = await DocsPage.open(browser, url)
    await page.checkOperations()
    await page.logIn('boss', password)
    return page
  }
}

/** Logs in on the console, which calls both services across origins. */
export async function tryConsole({ port }: Front) {
  const browser = await launchChromium(port)
  try {
    const page = await browser.newPage({ ignoreHTTPSErrors: true })
    page.setDefaultTimeout(120_000)
    const complaints: string[] = []
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text())
    })
    page.on('pageerror', (error) => complaints.push(String(error)))
    await page.goto('https://console.example.com')
    await page.getByLabel('User name').fill('boss')
    await page.getByLabel('Password').fill(password)
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'alder-and-finch.com' }).waitFor()
    await page.goto('https://console.example.com/#/files/same/')
    await page.getByText('noise.bin').first().waitFor()
    assert.deepEqual(complaints, [], 'errors in the browser console')
  } finally {
    await browser.close()
  }
}
