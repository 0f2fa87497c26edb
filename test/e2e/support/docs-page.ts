import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'

/** The /docs page of one service in Chromium, and everything that it complains about or requests from elsewhere. */
export class DocsPage implements AsyncDisposable {
  readonly #page: Page
  readonly #url: string
  readonly #complaints: string[] = []
  readonly #foreign: string[] = []

  private constructor(page: Page, url: string) {
    this.#page = page
    this.#url = url
    this.#watch()
  }

  /** Opens the page of the service at `url`, which has no trailing slash. */
  static async open(browser: Browser, url: string): Promise<DocsPage> {
    const viewport = { width: 1200, height: 1400 }
    const page = await browser.newPage({ viewport, ignoreHTTPSErrors: true })
    page.setDefaultTimeout(120_000)
    const docs = new DocsPage(page, url)
    await page.goto(`${url}/docs/`)
    await page.locator('.opblock').first().waitFor()
    return docs
  }

  /** Asserts that the page shows exactly the operations of the OpenAPI document. */
  async checkOperations() {
    const shown = await this.#page
      .locator('.opblock')
      .evaluateAll((blocks) =>
        blocks.map((block) =>
          ['.opblock-summary-method', '.opblock-summary-path']
            .map((part) => block.querySelector(part)?.textContent?.replaceAll('\u200b', ''))
            .join(' '),
        ),
      )
    const address = JSON.stringify(`${this.#url}/openapi.json`)
    const document: string = await this.#page.evaluate(`fetch(${address}).then((response) => response.text())`)
    const { paths }: { paths: Record<string, object> } = JSON.parse(document)
    const documented = Object.entries(paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    )
    assert.deepEqual(shown.sort(), documented.sort())
  }

  /** Logs in as a person does; asserts that further requests carry the token. */
  async logIn(username: string, password: string) {
    const before = await this.execute('getMe')
    assert.equal(before.status, 401)
    this.#complaints.splice(0) // The browser itself logs every 401.
    const login = await this.execute('logIn', JSON.stringify({ username, password }))
    assert.equal(login.status, 200)
    const me = await this.execute('getMe')
    assert.deepEqual([me.status, me.body.user], [200, { username, role: 'admin' }])
  }

  /** Opens an operation, fills in its form, presses Execute, and returns the response. */
  async execute(operationId: string, given: Record<string, string> | string = {}, file?: string) {
    const block = this.#page.locator(`[id$="-${operationId}"]`)
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
    if (file) await block.locator('input[type=file]').first().setInputFiles(file)
    const [response] = await Promise.all([
      this.#page.waitForResponse((each) => /\/(?:api|static)\//.test(each.url())),
      button.click(),
    ])
    await block.locator('.live-responses-table .response').waitFor()
    const text = await response.text()
    const isJson = response.headers()['content-type']?.includes('json')
    return { status: response.status(), body: isJson ? JSON.parse(text) : text }
  }

  /** Asserts that nothing was logged as an error, and that no request left the address of the service. */
  check() {
    assert.deepEqual(this.#complaints, [], 'errors in the browser console')
    assert.deepEqual(this.#foreign, [], 'requests outside of the service')
  }

  async picture(folder: string, name: string) {
    await this.#page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
  }

  async [Symbol.asyncDispose]() {
    await this.#page.context().close()
  }

  #watch() {
    this.#page.on('console', (message) => {
      if (message.type() === 'error') this.#complaints.push(message.text())
    })
    this.#page.on('pageerror', (error) => this.#complaints.push(String(error)))
    this.#page.on('request', (request) => {
      const url = request.url()
      const isHere = url.startsWith(`${this.#url}/`) || /^(?:data|blob):/.test(url)
      if (!isHere) this.#foreign.push(url)
    })
  }
}
