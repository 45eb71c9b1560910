/**
 * Postgres of the vitest project `postgres`: one cluster for the test run. Each server of a test has its own database.
 */
import type { TestProject } from 'vitest/node'
import { findPostgres, startCluster } from './cluster.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Directory of the cluster's socket. Undefined in other projects. */
    postgres: string | undefined
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const programs = findPostgres()
  if (!programs) throw new Error('There is no Postgres here; `script/setup --for-tests` installs it.')
  const cluster = await startCluster(programs)
  project.provide('postgres', cluster.directory)
  return cluster.stop
}
