import { readdirSync } from 'node:fs'
import { defineConfig } from 'vitest/config'

// Each extends what is said for all below: a bare folder name would have the defaults.
const packages = readdirSync(new URL('packages', import.meta.url)).map((name) => ({
  extends: true as const,
  root: `packages/${name}`,
  test: { name: `@house/${name}` },
}))

export default defineConfig({
  test: {
    projects: [
      ...packages,
      { extends: true, test: { name: 'house', include: ['test/**/*.test.ts'] } },
    ],
    testTimeout: 30_000,
  },
})
