import { existsSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { findPostgres } from './test/support/cluster.ts'

// Every driver's tests, on a Docker that the tests start themselves. That needs root: without it, and without CI, the
// sandboxes are tested on bubblewrap alone, and script/test says so.
const hasDocker = process.env.CI !== undefined || (process.getuid?.() === 0 && existsSync('/usr/sbin/dockerd'))

// The contract runs again on Postgres, each server on its own database. These files are left out, because what they check
// stores nothing of its own: how tools, networks, search, models, schemas and the demo model behave, limits on connections,
// what validation and the documents say, what keeps a server from starting.
const SAME_ON_EVERY_STORE = [
  'test/contract/tools{,-edits,-files,-find,-isolation,-limits,-output}.test.ts',
  'test/contract/{network,network-credentials,ssrf,web-search,web-search-provider,pip}.test.ts',
  'test/contract/{agent-loop,model-servers,schema-time}.test.ts',
  'test/contract/{errors-fields,files-in-buckets,in-flight}.test.ts',
  'test/contract/{demo,demo-off,openapi,operator,revisions,server,skills-hostile}.test.ts',
]
const hasPostgres = process.env.CI !== undefined || findPostgres() !== undefined

export default defineConfig({
  test: {
    // Real servers, sandboxes and browsers: generous limits that only a hang reaches. No test asserts a time.
    testTimeout: 120_000,
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
                  'test/sandbox/{escape,isolation,bombs,network,left-behind,mcp-module,shared-kernel}.test.ts',
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
