import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    projects: [
      'packages/*',
      { test: { name: 'house', include: ['test/**/*.test.ts'], testTimeout: 30_000 } },
    ],
    testTimeout: 30_000,
  },
})
