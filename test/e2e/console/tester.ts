import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Browser, BrowserContext, CDPSession, Locator, Page } from 'playwright-core'
import { runCommand } from '../../../packages/auth/test/support/commands.ts'
import type { Everything } from '../../support/everything.ts'
import { Api } from './api.ts'

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const axeOptions = {
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
  resultTypes: ['violations'], // Else it describes every element that passes, too.
}

export interface TesterOptions {
  scheme?: 'light' | 'dark'
  width?: number
  /** Default: that of the machine. */
  timezoneId?: string
}

/** A person at the console: one browser window, logged in, and everything that it complains about. */
export class Tester implements AsyncDisposable {
  readonly page: Page
  readonly everything: Everything
  readonly #context: BrowserContext
  readonly #pictures: string | undefined
  readonly #complaints: string[] = []
  readonly #foreign: string[] = []
  // Chromium breaks off what it is loading when any program of the machine adds or removes a network interface.
  readonly #expected = [/ERR_NETWORK_CHANGED/]
  #wasCut = false
  #logins: string | undefined

  private constructor(context: BrowserContext, page: Page, everything: Everything, pictures: string | undefined) {
    this.#context = context
    this.page = page
    this.everything = everything
    this.#pictures = pictures
    this.#watch()
  }

  /** Opens the console without logging in. Without a folder for pictures, none are taken. */
  static async open(
    browser: Browser,
    everything: Everything,
    pictures: string | undefined,
    { scheme = 'light', width = 1280, ...more }: TesterOptions = {},
  ): Promise<Tester> {
    const viewport = { width, height: width < 500 ? 760 : 860 }
    const context = await browser.newContext({ viewport, colorScheme: scheme, ...more })
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    const page = await context.newPage()
    page.setDefaultTimeout(120_000)
    const tester = new Tester(context, page, everything, pictures)
    await page.goto(everything.console)
    await tester.#repeatIfCut()
    await page.getByLabel('User name').waitFor()
    return tester
  }

  async logIn(username = 'admin', password = this.everything.password) {
    await this.page.getByLabel('User name').fill(username)
    await this.page.getByLabel('Password').fill(password)
    await this.page.keyboard.press('Enter')
    await this.#waitUntilIn()
  }

  /**
   * What a new window is after the admin has logged in there, in this window: a new one starts a process and logs in, which
   * takes longer than most flows. The logins are those of before unless a flow has ended them.
   */
  async startOver() {
    const { page } = this
    await page.unrouteAll()
    await page.context().setOffline(false)
    await page.context().clearCookies()
    await page.emulateMedia({ media: null })
    // A page of the console's origin without its program.
    const empty = { contentType: 'text/html', body: '<link rel="icon" href="data:,">' }
    await page.route('**/empty', (route) => route.fulfill(empty))
    await page.goto(`${this.everything.console}/empty`)
    for (const list of [this.#complaints, this.#foreign]) list.length = 0
    this.#expected.length = 1
    await page.evaluate('sessionStorage.clear()')
    const isIn = this.#logins !== undefined && (await this.#isValid(this.#logins))
    if (isIn) await page.evaluate(`sessionStorage.logins = ${JSON.stringify(this.#logins)}`)
    await page.goto(this.everything.console)
    await this.#repeatIfCut()
    if (isIn) return this.#waitUntilIn()
    await this.logIn()
    this.#logins = await page.evaluate<string>('sessionStorage.logins')
  }

  async #isValid(logins: string) {
    const statuses = await this.statusOf(readTokens(logins))
    return statuses.every((status) => status === 200)
  }

  #waitUntilIn() {
    return this.page.getByRole('navigation', { name: 'Main', exact: true }).waitFor()
  }

  async logOut(name = 'admin') {
    await this.page.getByRole('button', { name, exact: true }).click()
    await this.endLogin()
  }

  /** With the account open. */
  endLogin() {
    return this.page.getByRole('button', { name: 'Log out', exact: true }).click()
  }

  /** Another person's window, not logged in; by default at the same console. */
  openAnother(everything = this.everything, options: TesterOptions = {}): Promise<Tester> {
    const browser = this.#context.browser()
    if (!browser) throw new Error('the browser is closed')
    return Tester.open(browser, everything, this.#pictures, options)
  }

  /** Loads the page again with other values in its configuration. */
  async useConfig(values: Record<string, unknown>) {
    await this.page.route('**/config.json', async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, json: { ...(await response.json()), ...values } })
    })
    await this.page.reload()
    await this.settle()
  }

  /** Opens the view at an address, as a link would. */
  async goTo(address: string) {
    await this.page.evaluate(`location.hash = ${JSON.stringify(address)}`)
    await this.settle()
    await this.#repeatIfCut()
  }

  async #repeatIfCut() {
    while (this.#wasCut) {
      this.#wasCut = false
      await this.page.reload()
      await this.settle()
    }
  }

  /** Waits until nothing is loading. */
  async settle() {
    await this.page.waitForLoadState('networkidle')
    const loading = this.page.locator('.skeleton')
    while ((await loading.count()) > 0) await loading.first().waitFor({ state: 'detached' })
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole('button', { name })
  }

  text(text: string | RegExp): Locator {
    return this.page.getByText(text).first()
  }

  /** A failed request that the flow provokes: the browser itself logs each one. */
  expectFailure(pattern: RegExp) {
    this.#expected.push(pattern)
  }

  readClipboard(): Promise<string> {
    return this.page.evaluate('navigator.clipboard.readText()')
  }

  async picture(name: string, options: { fullPage?: boolean } = {}) {
    if (this.#pictures === undefined) return
    await this.page.screenshot({ path: join(this.#pictures, `${name}.png`), ...options })
  }

  /** No violation of WCAG 2.2 A and AA. axe runs through the debugger, which the page's policy does not bind. */
  async checkAccessibility(view: string, { isHovering = false } = {}) {
    const session = await this.#context.newCDPSession(this.page)
    if (isHovering) await hoverAll(session)
    await session.send('Runtime.evaluate', { expression: axeSource })
    const { result } = await session.send('Runtime.evaluate', {
      expression: `axe.run(document, ${JSON.stringify(axeOptions)}).then(({ violations }) =>
        violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html.slice(0, 200))))`,
      awaitPromise: true,
      returnByValue: true,
    })
    await session.detach()
    assert.deepEqual(result.value, [], `accessibility of ${view}`)
  }

  /** Nothing was logged as an error, and nothing was requested from elsewhere. */
  checkComplaints() {
    assert.deepEqual(this.#complaints, [], 'errors in the browser console')
    assert.deepEqual(this.#foreign, [], 'requests to other origins')
  }

  /** Calls of somebody else, by default the admin's. */
  domainsApi(username = 'admin', password = this.everything.password) {
    return Api.logIn(this.everything.domains, username, password)
  }

  filesApi(username = 'admin', password = this.everything.password) {
    return Api.logIn(this.everything.files, username, password)
  }

  /** The tokens of this tab. */
  async tokens(): Promise<Tokens> {
    return readTokens(await this.page.evaluate<string>('sessionStorage.logins'))
  }

  /** Of the answers of both services to these tokens. */
  statusOf(tokens: Tokens): Promise<number[]> {
    return Promise.all(
      (['domains', 'files'] as const).map(async (service) => {
        const headers = { authorization: `Bearer ${tokens[service]}` }
        return (await fetch(`${this.everything[service]}/api/auth/me`, { headers })).status
      }),
    )
  }

  async [Symbol.asyncDispose]() {
    await this.#context.close()
  }

  #watch() {
    const { console: own, domains, files, provider } = this.everything
    this.page.on('console', (message) => {
      if (message.type() !== 'error') return
      const text = `${message.text()} ${message.location().url}`
      if (!this.#expected.some((pattern) => pattern.test(text))) this.#complaints.push(text)
    })
    this.page.on('pageerror', (error) => this.#complaints.push(String(error.stack)))
    this.page.on('requestfailed', (request) => {
      if (request.failure()?.errorText === 'net::ERR_NETWORK_CHANGED') this.#wasCut = true
    })
    this.page.on('request', (request) => {
      const url = request.url()
      const isOwn = [own, domains, files, provider].some((origin) => origin && url.startsWith(`${origin}/`))
      const isOfProvider = provider && request.frame().url().startsWith(`${provider}/`)
      if (!isOwn && !isOfProvider && !/^(?:data|blob):/.test(url)) this.#foreign.push(url)
    })
  }
}

interface Tokens {
  domains: string
  files: string
}

/** From what the console keeps in `sessionStorage`. */
function readTokens(stored: string): Tokens {
  const logins = new Map<string, { token: string }>(JSON.parse(stored))
  const tokenOf = (service: string) => logins.get(service)?.token ?? ''
  return { domains: tokenOf('domains'), files: tokenOf('files') }
}

/** Puts all that can be pressed into the state below a pointer, as long as the session lasts. */
async function hoverAll(session: CDPSession) {
  for (const domain of ['DOM', 'CSS'] as const) await session.send(`${domain}.enable`)
  const { root } = await session.send('DOM.getDocument')
  const selector = 'button, a, input, select, [role=row]'
  const { nodeIds } = await session.send('DOM.querySelectorAll', { nodeId: root.nodeId, selector })
  for (const nodeId of nodeIds) await session.send('CSS.forcePseudoState', { nodeId, forcedPseudoClasses: ['hover'] })
  const expression =
    'Promise.all(document.getAnimations().filter((each) => each instanceof CSSTransition).map((each) => each.finished))'
  await session.send('Runtime.evaluate', { expression, awaitPromise: true })
}

/** Adds a user, or gives one a new password, with the command that operators use. */
export async function manageUsers({ dataDir }: Everything, words: string[], password: string) {
  const env = { USERS_FILE: join(dataDir, 'users.json') }
  const { status, stderr } = await runCommand('users', words, { env, stdin: `${password}\n` })
  assert.equal(status, 0, stderr)
}

/** What a person does, by the sentence that says what must come of it. */
export type Flows = Record<string, (tester: Tester) => Promise<void>>
