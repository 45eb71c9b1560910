import { existsSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { findPostgres } from './test/support/cluster.ts'

// Every driver's tests, on a Docker that the tests start themselves. That needs root: without it, and without CI, the
// sandboxes are tested on bubblewrap alone, and script/test says so.
const hasDocker = process.env.CI !== undefined || (process.getuid?.() === 0 && existsSync('/usr/sbin/dockerd'))

// The front door once more, each server on a database of its own. `test/store` and what else is written for both stores runs
// on both in the first project already; of the rest, this is left out, as it stores nothing of its own: how tools, networks,
// search and the demo model behave, what the documents say, what keeps a server from starting.
const SAME_ON_EVERY_STORE = [
  'test/contract/tools{,-files,-isolation,-limits,-output}.test.ts',
  'test/contract/{network,network-credentials,ssrf,web-search,web-search-provider}.test.ts',
  'test/contract/{demo,demo-off,openapi,operator,revisions,server,skills-hostile}.test.ts',
]
const hasPostgres = process.env.CI !== undefined || findPostgres() !== undefined

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
        test: { name: 'errand', include: ['test/**/*.test.ts'], exclude: ['test/sandbox/docker/**', 'test/deploy/docker/**'] },
      },
      ...(hasPostgres
        ? [
            {
              extends: true as const,
              test: {
                name: 'postgres',
                include: ['test/contract/**/*.test.ts', 'test/mcp/{approvals,parked,secrets}.test.ts', 'test/skills/lasting.test.ts'],
                exclude: SAME_ON_EVERY_STORE,
                globalSetup: 'test/support/postgres.ts',
              },
            },
          ]
        : []),
      ...(process.getuid?.() === 0
        ? [
            {
              extends: true as const,
              test: {
                name: 'whole',
                include: [
                  'test/sandbox/{escape,isolation,bombs,network,left-behind,shared-kernel}.test.ts',
                  'test/sandbox/bubblewrap/{driver,network,seccomp}.test.ts',
                ],
                globalSetup: 'test/sandbox/whole.ts',
              },
            },
            {
              extends: true as const,
              test: {
                name: 'preloaded',
                include: ['test/sandbox/{escape,isolation,bombs,network,left-behind,sessions,shared-kernel}.test.ts'],
                globalSetup: 'test/sandbox/preloaded.ts',
              },
            },
          ]
        : []),
      ...(hasDocker
        ? [
            {
              extends: true as const,
              test: {
                name: 'docker',
                include: ['test/sandbox/*.test.ts', 'test/{sandbox,deploy}/docker/**/*.test.ts'],
                globalSetup: 'test/sandbox/dockerd.ts',
              },
            },
          ]
        : []),
    ],
  },
})
