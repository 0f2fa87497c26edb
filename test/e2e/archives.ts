import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { installChromium, launchChromium } from './support/chromium.ts'
import { Client } from './support/client.ts'
import { password, startProgram } from './support/services.ts'
import { step } from './support/step.ts'

// Folders as archives of GNU tar, bsdtar, zip and curl; a site of hugo, and a tab that was opened before a deploy.

installChromium()
const folder = mkdtempSync(join(tmpdir(), 'archives-'))
await using opened = new AsyncDisposableStack()
opened.defer(() => rmSync(folder, { recursive: true, force: true }))
const service = opened.use(
  await startProgram('static-service', {
    ADMIN_USERNAME: 'boss',
    ADMIN_PASSWORD: password,
    DATA_DIR: join(folder, 'data'),
    STATIC_SITES: 'site/',
  }),
)
const origin = `http://127.0.0.1:${service.port}`
const client = new Client(service.port)
await client.logIn('boss', password)

const shell = (command: string, cwd = folder) =>
  execFileSync('bash', ['-euc', command], {
    cwd,
    encoding: 'utf8',
    env: {
      ...process.env,
      URL: `${origin}/api/trees`,
      AUTH: `authorization: Bearer ${client.token}`,
    },
  })

const write = (root: string, files: Record<string, string | Buffer>) => {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), content)
  }
}

interface Result {
  change: { id: number; action: string } | null
  files: number
  code?: string
  detail?: string
}

/** PUTs what a command writes, by curl. */
const put = (tree: string, command: string, cwd?: string): Result & { status: number } => {
  const printed = shell(`${command} | curl -sS -T - -H "$AUTH" -w '\\n%{http_code}' "$URL/${tree}"`, cwd)
  const [body = '', status] = printed.trim().split('\n')
  return { ...JSON.parse(body), status: Number(status) }
}

const source = join(folder, 'source')
write(source, {
  'index.html': '<h1>Hello',
  'empty.txt': '',
  'ünï/日本 x.txt': 'name',
  [`${'d'.repeat(90)}/${'e'.repeat(90)}/${'n'.repeat(200)}.txt`]: 'long',
  'large.bin': Buffer.alloc(9_000_000, 'noise '),
})

const packers: Record<string, string> = {
  'GNU tar': 'tar c -C source .',
  'GNU tar, POSIX headers': 'tar c --format=pax -C source .',
  'GNU tar, old headers': 'tar c --format=oldgnu -C source .',
  'GNU tar, gzip': 'tar cz -C source .',
  'GNU tar, zstd': 'tar c --zstd -C source .',
  bsdtar: 'bsdtar c -C source .',
  'bsdtar, gzip': 'bsdtar cz -f - -C source .',
  'bsdtar, ustar with long names as pax': 'bsdtar c --format pax -f - -C source .',
  'bsdtar, zip': 'bsdtar c --format zip -f - -C source .',
  'zip to a stream': '(cd source && zip -qr - .)',
  'zip of a file': '(cd source && rm -f ../all.zip && zip -qr ../all.zip . && cat ../all.zip)',
}

for (const [at, [name, command]] of Object.entries(packers).entries()) {
  await step(`${name}: the folder is deployed, and equal to what the others send`, async () => {
    const { status, files, change, detail } = put('tools/', command)
    assert.deepEqual([status, files, change === null], [200, 5, at > 0], `${detail} ${JSON.stringify(change)}`)
  })
}

const unpackers: Record<string, string> = {
  'GNU tar': 'curl -sS -H "$AUTH" "$URL/tools/" | tar x -C copy',
  bsdtar: 'curl -sS -H "$AUTH" "$URL/tools/" | bsdtar x -f - -C copy',
  unzip: 'curl -sS -H "$AUTH" -H "accept: application/zip" "$URL/tools/" -o all.zip && unzip -q all.zip -d copy',
  'bsdtar of a zip': 'curl -sS -H "$AUTH" -H "accept: application/zip" "$URL/tools/" | bsdtar x -f - -C copy',
}

for (const [name, command] of Object.entries(unpackers)) {
  await step(`${name}: the download is the folder`, async () => {
    shell(`mkdir copy && ${command} && diff -r source copy && rm -r copy`)
  })
}

const refused: Record<string, string> = {
  'a symbolic link': 'ln -s a b && tar c .',
  'a hard link': 'ln a b && tar c .',
  'a FIFO': 'mkfifo b && tar c .',
  'an absolute name': 'tar cP "$PWD/a"',
  'a name above': 'mkdir sub && tar cP -C sub ../a',
  'a symbolic link in a zip': 'ln -s a b && zip -qry ../l.zip . && cat ../l.zip',
  'a sparse file': 'truncate -s 1M b && printf x >> b && tar cS .',
  'a tar that is cut': 'tar c . | head -c 1000',
  'a tar without its end': 'tar c a | head -c 1024',
  'a gzip that is cut': 'head -c 100000 /dev/urandom > b && tar cz . | head -c 50000',
  'a zip that is cut': 'zip -qr - . | head -c 100',
  'a name twice': 'tar c a a',
}

await step('archives that are refused change nothing', async () => {
  const before = await client.call('/api/trees/tools/', { headers: { accept: 'application/json' } })
  for (const [what, command] of Object.entries(refused)) {
    const cwd = mkdtempSync(join(folder, 'refused-'))
    write(cwd, { a: 'content' })
    const { status, code } = put('tools/', `(${command})`, cwd)
    assert.deepEqual([status, code], [400, 'invalid_archive'], what)
  }
  const after = await client.call('/api/trees/tools/', { headers: { accept: 'application/json' } })
  assert.equal(after.headers.get('etag'), before.headers.get('etag'))
  return `${Object.keys(refused).length} archives`
})

await step('what macOS adds is skipped', async () => {
  const cwd = mkdtempSync(join(folder, 'mac-'))
  write(cwd, { a: 'a', '._a': 'x', '.DS_Store': 'x', 'sub/._b': 'x', '__MACOSX/._a': 'x' })
  assert.equal(put('mac/', 'tar c .', cwd).files, 1)
  assert.equal(put('mac/', 'zip -qr - .', cwd).change, null)
})

/** Builds the site with hugo. The page loads a script by a name with its digest, when its button is pressed. */
function buildSite(text: string): string {
  const site = join(folder, 'hugo')
  write(site, {
    'hugo.toml': `baseURL = "${origin}/static/site/"\ntitle = "T"\ndisableKinds = ["taxonomy", "term", "RSS"]\n`,
    'assets/lazy.js': `export const text = ${JSON.stringify(text)}\n`,
    'content/about.md': '---\ntitle: About\n---\nHello\n',
    'layouts/_default/single.html': '<h1>{{ .Title }}</h1>{{ .Content }}',
    'layouts/_default/list.html': '<h1>{{ .Title }}</h1>',
    'layouts/index.html': `{{ $lazy := resources.Get "lazy.js" | fingerprint }}<!doctype html><title>${text}</title>
<button>Load</button><p></p><script type="module" src="{{ (resources.Get "page.js" | resources.ExecuteAsTemplate "page.js" . | fingerprint).RelPermalink }}"></script>`,
    'assets/page.js': `document.querySelector('button').onclick = async () => {
  const { text } = await import('{{ (resources.Get "lazy.js" | fingerprint).RelPermalink }}')
  document.querySelector('p').textContent = text
}\n`,
  })
  shell('rm -rf public && hugo --quiet', site)
  return join(site, 'public')
}

await step('a tab that was opened before a deploy of hugo still loads its script', async () => {
  const deploy = (text: string) => {
    const site = buildSite(text)
    const lazy = readdirSync(site).find((name) => /^lazy\..*\.js$/.test(name))
    assert.equal(put('site/', 'tar c .', site).change?.action, 'deploy')
    assert.ok(lazy)
    return lazy
  }
  const old = deploy('first')
  const browser = await launchChromium()
  try {
    const page = await browser.newPage()
    page.setDefaultTimeout(120_000)
    await page.goto(`${origin}/static/site/`, { waitUntil: 'networkidle' })
    const next = deploy('second')
    assert.notEqual(next, old)
    await page.getByRole('button').click()
    await page.getByText('first', { exact: true }).waitFor()
    await page.reload({ waitUntil: 'networkidle' })
    assert.equal(await page.title(), 'second')
    await page.getByRole('button').click()
    await page.getByText('second', { exact: true }).waitFor()
  } finally {
    await browser.close()
  }
  const past = await client.call(`/static/site/${old}`)
  assert.equal(past.headers.get('cache-control'), 'public, max-age=0, must-revalidate')
  await client.call('/static/site/gone.html', { status: 404 })
  return `${readFileSync(join(folder, 'hugo/public/index.html'), 'utf8').length} bytes of page`
})
