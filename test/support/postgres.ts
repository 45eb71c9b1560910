/** The Postgres of the project `postgres`: one cluster for the run; each server that a test starts has its own database. */
import type { TestProject } from 'vitest/node'
import { findPostgres, startCluster } from './cluster.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The directory of its socket; not there in the other projects. */
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
