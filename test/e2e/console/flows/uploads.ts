import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type Everything, root } from '../../../support/everything.ts'
import { reservePorts } from '../../../support/ports.ts'
import { Line } from '../line.ts'
import { chooseFiles } from '../pick-files.ts'
import type { Flows } from '../tester.ts'

// UPLOAD_MB: how large the file is; 500 is what a bad line meets.
const bytes = Math.round(Number(process.env.UPLOAD_MB ?? '2') * 1024 * 1024)
const partBytes = Math.max(65_536, Math.min(16_777_216, Math.round(bytes / 32)))
const quarter = Math.round(bytes / 4)

/** Large files, which survive a bad line, a service that starts again, and a reload of the page. */
export const uploadFlows: Flows = {
  'continues a large upload after a cut line, a killed service, a pause and a reload': async (
    tester,
  ) => {
    await using alone = await FilesAlone.start(tester.everything)
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

/** A static service that can be killed, behind a line that can be cut, with a console of its own. */
class FilesAlone implements AsyncDisposable {
  readonly everything: Everything
  readonly line: Line
  readonly #env: Record<string, string>
  readonly #console: ChildProcess
  #service: ChildProcess | undefined

  private constructor(base: Everything, port: number, line: Line) {
    this.line = line
    const dataDir = join(base.dataDir, 'alone')
    mkdirSync(dataDir)
    const at = (offset: number) => `http://127.0.0.1:${port + offset}`
    const password = randomBytes(12).toString('hex')
    this.#env = {
      PORT: String(port),
      DATA_DIR: dataDir,
      USERS_FILE: join(dataDir, 'users.json'),
      ADMIN_USERNAME: 'admin',
      ADMIN_PASSWORD: password,
      CORS_ORIGIN: at(1),
    }
    this.#console = run('console', {
      PORT: String(port + 1),
      STATIC_SERVICE_URL: at(2),
      UPLOAD_PART_BYTES: String(partBytes),
    })
    this.everything = { ...base, domains: '', files: at(2), console: at(1), dataDir, password }
  }

  static async start(base: Everything): Promise<FilesAlone> {
    const port = await reservePorts(3)
    const alone = new FilesAlone(base, port, await Line.open(port + 2, port))
    await Promise.all([alone.startService(), untilHealthy(alone.everything.console)])
    return alone
  }

  async startService() {
    this.#service = run('static-service', this.#env)
    await untilHealthy(`http://127.0.0.1:${this.#env.PORT}`)
  }

  async kill() {
    if (!this.#service) return
    const ended = once(this.#service, 'exit')
    this.#service.kill('SIGKILL')
    await ended
  }

  async [Symbol.asyncDispose]() {
    const ended = once(this.#console, 'exit')
    this.#console.kill()
    await Promise.all([ended, this.kill(), this.line[Symbol.asyncDispose]()])
  }
}

const run = (name: string, env: Record<string, string>) =>
  spawn(process.execPath, [join(root, 'packages', name, 'dist/main.js')], {
    env: { ...process.env, LOG_LEVEL: 'error', HOST: '127.0.0.1', ...env },
    stdio: 'inherit',
  })

/** The services say nothing when they are ready, so that this asks. */
async function untilHealthy(url: string) {
  for (;;) {
    const response = await fetch(`${url}/health`).catch(() => undefined)
    if (response?.ok) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
