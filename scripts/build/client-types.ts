import { execFileSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

// Writes the client's declarations beside its bundle. The compiler keeps `.ts` in their imports, where only the `.d.ts`
// files of the package are: `.js` finds these.

const root = join(import.meta.dirname, '../..')
const client = join(root, 'packages/client')
execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', join(client, 'tsconfig.types.json')], {
  stdio: 'inherit',
})
for (const file of globSync('dist/**/*.d.ts', { cwd: client }).map((each) => join(client, each))) {
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.replace(/(from '\.[^']*(?<!\.d))\.ts'/g, "$1.js'"))
}
