import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Everything } from '../../../support/everything.ts'
import { chooseFiles } from '../pick-files.ts'
import { ServiceAlone } from '../service-alone.ts'
import type { Flows } from '../tester.ts'

// UPLOAD_MB: how large the file is; 500 is what a bad line meets.
const bytes = Math.round(Number(process.env.UPLOAD_MB ?? '2') * 1024 * 1024)
const UPLOAD_PART_BYTES = String(Math.max(65_536, Math.min(16_777_216, Math.round(bytes / 32))))
const quarter = Math.round(bytes / 4)

/** Large files, which survive a bad line, a service that starts again, and a reload of the page. */
export const uploadFlows: Flows = {
  'continues a large upload after a cut line, a killed service, a pause and a reload': async (tester) => {
    await using alone = await ServiceAlone.start(tester.everything, 'static-service', {
      UPLOAD_PART_BYTES,
    })
    const { line } = alone
    await using other = await tester.openAnother(alone.everything)
    const { page } = other
    other.expectFailure(/net::ERR_|status of 50[23]/)
    await other.logIn('admin', alone.everything.password)
    await other.goTo('/files/')
    let creations = 0
    page.on('request', (request) => {
      if (request.method() === 'POST' && request.url().endsWith('/api/uploads')) creations += 1
    })
    const file = makeFile(alone.everything, 'holiday film.bin')

    const atQuarter = line.stopAfter(quarter)
    await chooseFiles(page, [file.path])
    await atQuarter
    line.cut()
    await other.text('interrupted, trying again').waitFor()
    await other.checkAccessibility('an interrupted upload')
    await other.picture('upload-interrupted')

    line.mend()
    await line.stopAfter(quarter)
    await alone.kill()
    line.mend()
    await other.text('interrupted, trying again').waitFor()
    const beforeEnd = line.stopAfter(quarter)
    await alone.startService()
    await beforeEnd
    await other.button('Pause holiday film.bin').click()
    await other.text('paused').waitFor()

    line.mend()
    page.once('dialog', (dialog) => void dialog.accept())
    await page.reload()
    await other.text('1 upload interrupted').waitFor()
    await other.checkAccessibility('an upload after a reload')
    await other.picture('upload-after-reload')
    await chooseFiles(page, [file.path])
    await other.text('1 file uploaded').waitFor({ timeout: 600_000 })
    const api = await other.filesApi('admin', alone.everything.password)
    const stored = await api.call('GET', '/api/files/holiday%20film.bin')
    assert.equal(stored.sha256, file.sha256)
    assert.equal(creations, 1)
    assert.equal(await page.evaluate('sessionStorage.getItem("uploads")'), null)
    other.checkComplaints()
  },

  'sends small files again after a cut line, but for one that was cancelled': async (tester) => {
    await using alone = await ServiceAlone.start(tester.everything, 'static-service', {})
    const { line } = alone
    await using other = await tester.openAnother(alone.everything)
    other.expectFailure(/net::ERR_/)
    await other.logIn('admin', alone.everything.password)
    await other.goTo('/files/')
    const files = Array.from({ length: 30 }, (_, at) => {
      const path = join(alone.everything.dataDir, `small ${at}.bin`)
      writeFileSync(path, randomBytes(10_000))
      return path
    })

    const stopped = line.stopAfter(100_000)
    await chooseFiles(other.page, files)
    await stopped
    await other.button('Cancel small 7.bin').click()
    await other.text('cancelled').waitFor()
    line.cut()
    await other.text(/^interrupted, trying again: The files service at .+ did not answer/).waitFor()
    line.mend()
    await other.text('29 files uploaded').waitFor()

    const api = await other.filesApi('admin', alone.everything.password)
    const { changes } = await api.call('GET', '/api/changes')
    assert.deepEqual(
      changes.map(({ added }: { added: number }) => added),
      [29],
    )
    other.checkComplaints()
  },

  'refuses a file over the limit when it is chosen': async (tester) => {
    const { page, everything } = tester
    await tester.useConfig({ max_upload_bytes: 2000 })
    await tester.goTo('/files/')
    const large = join(everything.dataDir, 'a file with a rather long name that is too large.bin')
    writeFileSync(large, Buffer.alloc(2001))
    const sent: string[] = []
    page.on('request', (request) => sent.push(request.url()))
    await chooseFiles(page, [large])
    await tester.text(/is more than the .* that the service takes/).waitFor()
    assert.deepEqual(
      sent.filter((url) => url.includes('/api/upload')),
      [],
    )
    await tester.checkAccessibility('a file over the limit')
    await tester.picture('upload-too-large')
  },
}

/** Random bytes in the test's folder. */
function makeFile({ dataDir }: Everything, name: string) {
  const path = join(dataDir, name)
  const hash = createHash('sha256')
  const file = openSync(path, 'w')
  for (let at = 0; at < bytes; at += 1024 * 1024) {
    const block = randomBytes(Math.min(1024 * 1024, bytes - at))
    hash.update(block)
    writeSync(file, block)
  }
  return { path, sha256: hash.digest('hex') }
}
