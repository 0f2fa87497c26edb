import { readdirSync } from 'node:fs'
import { defineConfig } from 'vitest/config'

// Each project takes the time limit from here: by a bare path it would have the tool's own, five seconds.
const rooms = readdirSync(new URL('packages/', import.meta.url)).map((room) => ({
  extends: true as const,
  test: { name: room, root: `packages/${room}` },
}))

export default defineConfig({
  test: {
    testTimeout: 30_000,
    // Tests mostly wait, for disks and for processes that they start: three files at a time keep two cores busy.
    maxWorkers: 3,
    projects: [
      ...rooms,
      { extends: true, test: { name: 'repository', include: ['test/**/*.test.ts'] } },
    ],
  },
})
