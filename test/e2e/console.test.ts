import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, test } from 'vitest'
import type { Everything } from '../support/everything.ts'
import { historyFlows } from './console/flows/history.ts'
import { recordFlows } from './console/flows/records.ts'
import { registrarFlows } from './console/flows/registrar.ts'
import { sessionFlows } from './console/flows/session.ts'
import { tokenFlows } from './console/flows/tokens.ts'
import { startWithProvider } from './console/provider.ts'
import { Tester } from './console/tester.ts'
import { hasChromium, launchChromium } from './support/chromium.ts'

// The fast flows of `npm run test:browser`, where Chromium is installed.

let everything: Everything
let browser: Browser
let tester: Tester

beforeAll(async () => {
  if (!hasChromium) return
  everything = await startWithProvider()
  browser = await launchChromium()
  tester = await Tester.open(browser, everything, undefined)
})

afterAll(async () => {
  await browser?.close()
  await everything?.[Symbol.asyncDispose]()
})

if (hasChromium) {
  describe('in the console, a person', () => {
    const flows = {
      ...recordFlows,
      ...historyFlows,
      ...tokenFlows,
      ...registrarFlows,
      ...sessionFlows,
    }
    test.each(Object.entries(flows))('%s', async (_name, run) => {
      await tester.startOver()
      await run(tester)
      tester.checkComplaints()
    })
  })
} else {
  process.stderr.write('console: not tried in a browser, since no Chromium is installed\n')
  test('the flows of the console have names', ({ expect }) => {
    expect(Object.keys(recordFlows).length).toBeGreaterThan(0)
  })
}
