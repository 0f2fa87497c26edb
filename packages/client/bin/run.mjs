import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Runs a command's TypeScript source: on this Node if it strips types, else on the Node that the repository installs. */
export async function run(name) {
  const source = new URL(`../src/commands/${name}.ts`, import.meta.url)
  const [major = 0] = process.versions.node.split('.').map(Number)
  if (major >= 24) return import(source.href)
  const node = fileURLToPath(new URL('../../../node_modules/.bin/node', import.meta.url))
  if (!existsSync(node)) {
    process.stderr.write('Run `npm run setup` in the repository first: it installs Node 26.\n')
    process.exit(1)
  }
  const args = [fileURLToPath(source), ...process.argv.slice(2)]
  process.exit(spawnSync(node, args, { stdio: 'inherit' }).status ?? 1)
}
