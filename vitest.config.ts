import { existsSync } from 'node:fs'
import { defineConfig } from 'vitest/config'

// Every driver's tests, on a Docker that the tests start themselves. That needs root: without it, and without CI, the
// sandboxes are tested on bubblewrap alone, and script/test says so.
const hasDocker = process.env.CI !== undefined || (process.getuid?.() === 0 && existsSync('/usr/sbin/dockerd'))

export default defineConfig({
  test: {
    // Real servers, sandboxes and browsers: generous limits that only a hang reaches. No test asserts a time.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: { name: 'errand', include: ['test/**/*.test.ts'], exclude: ['test/sandbox/docker/**'] },
      },
      ...(hasDocker
        ? [
            {
              extends: true as const,
              test: {
                name: 'docker',
                include: ['test/sandbox/*.test.ts', 'test/sandbox/docker/**/*.test.ts'],
                globalSetup: 'test/sandbox/dockerd.ts',
              },
            },
          ]
        : []),
    ],
  },
})
