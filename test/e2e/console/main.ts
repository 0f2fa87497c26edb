import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { installChromium, launchChromium } from '../support/chromium.ts'
import { eventFlows } from './flows/events.ts'
import { fileHistoryFlows } from './flows/file-history.ts'
import { fileFlows } from './flows/files.ts'
import { folderFlows } from './flows/folders.ts'
import { historyFlows } from './flows/history.ts'
import { manyRecordFlows } from './flows/many-records.ts'
import { recordFlows } from './flows/records.ts'
import { recoveryFlows } from './flows/recovery.ts'
import { registrarFlows } from './flows/registrar.ts'
import { reliabilityFlows } from './flows/reliability.ts'
import { sessionFlows } from './flows/session.ts'
import { sharingFlows } from './flows/sharing.ts'
import { tokenFlows } from './flows/tokens.ts'
import { uploadFlows } from './flows/uploads.ts'
import { userFlows } from './flows/users.ts'
import { versionFlows } from './flows/versions.ts'
import { startWithProvider } from './provider.ts'
import { Tester } from './tester.ts'
import { measureFirstLoad, showViews } from './views.ts'

// `npm run test:browser`: does with the console what people do, in Chromium, against running services. PICTURES names
// the folder of the pictures; `--readme` also replaces the two that the README shows. Words select flows by name.

const pictures = process.env.PICTURES ?? mkdtempSync(join(tmpdir(), 'console-pictures-'))
mkdirSync(pictures, { recursive: true })
const words = process.argv.slice(2).filter((word) => !word.startsWith('--'))
const maxBytes = 66 * 1024
const maxRequests = 25

installChromium()
await using everything = await startWithProvider()
const browser = await launchChromium()
try {
  const flows = {
    ...recordFlows,
    ...manyRecordFlows,
    ...reliabilityFlows,
    ...eventFlows,
    ...historyFlows,
    ...tokenFlows,
    ...registrarFlows,
    ...fileFlows,
    ...folderFlows,
    ...fileHistoryFlows,
    ...uploadFlows,
    ...recoveryFlows,
    ...sharingFlows,
    ...versionFlows,
    ...sessionFlows,
    ...userFlows,
  }
  const failed: string[] = []
  for (const [name, run] of Object.entries(flows)) {
    if (words.length > 0 && !words.some((word) => name.includes(word))) continue
    await using tester = await Tester.open(browser, everything, pictures)
    await tester.logIn()
    try {
      await run(tester)
      tester.checkComplaints()
      process.stdout.write(`✓ ${name}\n`)
    } catch (error) {
      failed.push(name)
      await tester.picture(`failed-${failed.length}`)
      process.stdout.write(`✗ ${name}: ${error instanceof Error ? error.stack : error}\n`)
    }
  }
  if (words.length === 0) {
    const { bytes, requests } = await measureFirstLoad(browser, everything)
    const label = `login page and first list: ${Math.round(bytes / 1024)} KiB, ${requests} requests`
    assert.ok(bytes <= maxBytes && requests <= maxRequests, label)
    process.stdout.write(`✓ ${label}\n`)
    await showViews(browser, everything, pictures)
    process.stdout.write('✓ every view in both schemes at three widths\n')
    if (process.argv.includes('--readme')) copyReadmePictures()
  }
  assert.deepEqual(failed, [], 'flows that failed')
} finally {
  await browser.close()
}
process.stdout.write(`the console works; pictures are in ${pictures}\n`)

function copyReadmePictures() {
  const images = join(import.meta.dirname, '../../../docs/images')
  mkdirSync(images, { recursive: true })
  copyFileSync(join(pictures, 'zone-draft.png'), join(images, 'console-domains.png'))
  copyFileSync(join(pictures, 'file-details-light-1280.png'), join(images, 'console-files.png'))
}
