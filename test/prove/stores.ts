/** Runs a test suite on each kind of store. */
import { describe } from 'vitest'
import { onPostgres } from '../store/backends.ts'

/** `createDatabase` returns the database for `startServer`: undefined is SQLite in the data directory. */
export function onEveryStore(suite: (createDatabase: () => Promise<string | undefined>) => void): void {
  describe('on SQLite', () => suite(async () => undefined))
  onPostgres('on Postgres', (cluster) => suite(() => cluster().createDatabase()))
}
