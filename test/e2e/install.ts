import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Machine } from './support/machine.ts'
import { step, until } from './support/step.ts'

// Runs the commands of docs/install.md in a container whose systemd starts the units.

const ports = { 'domain-service': 3001, 'static-service': 3002, console: 3000 }
const page = readFileSync(join(import.meta.dirname, '../../docs/install.md'), 'utf8')
const [secrets, admin] = blocksBelow('Configure')
const [start, addUser] = blocksBelow('Start')
const [backups] = blocksBelow('Daily backups')
const [upgrade, downgrade] = blocksBelow('Upgrade and downgrade')

using machine = await step('systemd starts in a container', () => Machine.boot())
await step('configure and start', async () => {
  for (const block of [secrets, admin, start]) machine.run(block)
  await untilHealthy()
})
await step('no service has root, capabilities or new privileges', checkProcesses)
await step('a user added while the service runs logs in', async () => {
  machine.run(`(${addUser}) <<< 'password of alice'`)
  logIn()
})
await step('the scheduled backups', async () => {
  machine.run(backups)
  for (const name of ['domain', 'static']) {
    const snapshots = machine.run(`ls /var/backups/domains-and-files/${name}/snapshots`)
    assert.match(snapshots, /^\S+Z\n$/)
  }
  assert.equal(machine.run('find /var/lib/private/*-service -user root'), '')
})
await step('upgrade', async () => {
  machine.run(upgrade)
  await untilHealthy()
  logIn()
  for (const name of Object.keys(ports)) assert.match(machine.run(`ls /var/cache/${name}`), /./)
})
await step('downgrade to the backup', async () => {
  machine.run(downgrade)
  await untilHealthy()
  logIn()
})

/** The commands below a heading: one string for each block. */
function blocksBelow(heading: string): [string, string] {
  const [, section = ''] = page.split(`## ${heading}\n`)
  const [text = ''] = section.split('\n## ')
  const [first = '', second = ''] = [...text.matchAll(/```bash\n(.*?)```/gs)].map(([, commands = '']) => commands)
  return [first, second]
}

async function untilHealthy() {
  for (const [name, port] of Object.entries(ports)) {
    await until(`${name} is healthy`, async () => {
      const health = `curl -s http://127.0.0.1:${port}/health || true`
      return machine.run(health).includes('"status":"ok"') || undefined
    })
  }
}

async function checkProcesses() {
  for (const name of Object.keys(ports)) {
    const process = machine.run(`cat /proc/$(systemctl show -p MainPID --value ${name})/status`)
    assert.match(process, /^Uid:\t(?!0\t)/m)
    assert.match(process, /^CapEff:\t0+$/m)
    assert.match(process, /^CapBnd:\t0+$/m)
    assert.match(process, /^NoNewPrivs:\t1$/m)
    assert.match(process, /^Seccomp:\t2$/m)
  }
}

function logIn() {
  machine.run(
    `curl -sS --fail-with-body http://127.0.0.1:3001/api/auth/login -H 'content-type: application/json' -d '{"username":"alice","password":"password of alice"}'`,
  )
}
