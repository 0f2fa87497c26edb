import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

const file = process.env.CHROMIUM ?? '/usr/bin/chromium'

export const hasChromium = existsSync(file)

/** Starts the Chromium of the system without any request of its own. With `port`, every host name is that local port. */
export function launchChromium(port?: number): Promise<Browser> {
  return chromium.launch({
    executablePath: file,
    timeout: 120_000,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--disable-quic',
      '--no-first-run',
      ...(port ? [`--host-resolver-rules=MAP * 127.0.0.1:${port}`] : []),
    ],
  })
}

/** Installs Chromium on Debian as root; elsewhere says what to do and exits with status 1. */
export function installChromium() {
  if (existsSync(file)) return
  const isDebian = existsSync('/usr/bin/apt-get') && process.getuid?.() === 0
  if (!isDebian || process.env.CHROMIUM) {
    process.stderr.write(
      `No Chromium at ${file}: install it (Debian: apt-get install chromium), or set CHROMIUM to its path.\n`,
    )
    process.exit(1)
  }
  const options = ['-o', 'DPkg::Lock::Timeout=600']
  execFileSync('apt-get', [...options, 'update'], { stdio: 'inherit' })
  execFileSync('apt-get', [...options, 'install', '-y', '--no-install-recommends', 'chromium'], {
    stdio: 'inherit',
  })
}
