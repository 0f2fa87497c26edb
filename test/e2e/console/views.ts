import assert from 'node:assert/strict'
import type { Browser } from 'playwright-core'
import type { Everything } from '../../support/everything.ts'
import { Api } from './api.ts'
import { Tester } from './tester.ts'

const views = {
  domains: '/domains',
  zone: '/domains/alder-and-finch.com',
  'zone-history': '/domains/alder-and-finch.com?tab=history',
  registration: '/domains/alder-and-finch.com?tab=registration',
  changes: '/changes',
  registrar: '/registrar',
  files: '/files/website/',
  'file-details': '/files/website/logo.svg',
  'files-awkward': '/files/awkward/',
  'files-awkward-found': '/files/awkward/?search=e&view=grid',
  'file-awkward': `/files/awkward/${encodeURIComponent(`${'long '.repeat(40)}name.txt`)}`,
  'file-changes': '/file-changes',
  versions: '/versions',
  statistics: '/statistics',
  tokens: '/tokens',
  users: '/users',
  trusts: '/trusts',
  events: '/events',
  webhooks: '/webhooks',
}

const awkward = [
  `${'long '.repeat(40)}name.txt`,
  `${'unbreakable'.repeat(20)}.tar.gz`,
  'sub 10/deep/deeper/two  spaces & <b>signs</b> 100%.txt',
  'sub 2/文件 файл שלום.txt',
  '.hidden',
  'no ending',
]

/** Pictures of every view in both schemes at three widths; none has an accessibility fault or scrolls sideways. */
export async function showViews(browser: Browser, everything: Everything, pictures: string) {
  const api = await Api.logIn(everything.files, 'admin', everything.password)
  for (const name of awkward) await api.upload(`awkward/${name}`, `${name}\n`.repeat(50))
  for (const scheme of ['light', 'dark'] as const) {
    for (const width of [360, 1280, 2560]) {
      await using tester = await Tester.open(browser, everything, pictures, { scheme, width })
      const label = (view: string) => `${view}-${scheme}-${width}`
      await tester.checkAccessibility(label('login'))
      await tester.picture(label('login'))
      await tester.logIn()
      for (const [view, address] of Object.entries(views)) {
        await tester.goTo(address)
        await tester.checkAccessibility(label(view))
        if (width === 1280) await tester.checkAccessibility(`${label(view)} below a pointer`, { isHovering: true })
        await tester.picture(label(view))
        const overflow = await tester.page.evaluate<number>(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        )
        assert.ok(overflow <= 0, `${label(view)} scrolls sideways by ${overflow} px`)
      }
      tester.checkComplaints()
    }
  }
}

/**
 * Bytes over the wire and requests, with those to the services, of the login page and the first list, in a browser that
 * has never seen them. Not counted are the empty preflights.
 */
export async function measureFirstLoad(browser: Browser, everything: Everything) {
  await using tester = await Tester.open(browser, everything, '.')
  const session = await tester.page.context().newCDPSession(tester.page)
  await session.send('Network.enable')
  await session.send('Network.clearBrowserCache')
  let bytes = 0
  let requests = 0
  session.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength
    if (encodedDataLength > 0) requests += 1
  })
  await tester.page.reload()
  await tester.logIn()
  await tester.page.locator('.domains-table tbody tr').first().waitFor()
  await tester.settle()
  return { bytes, requests }
}
