/** A process that opens a database on a signal, as a starting server does: `node starter.ts DATABASE`. */
import { once } from 'node:events'
import { openPostgres } from '../../src/store/postgres/postgres.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'

const database = process.argv[2]!
process.stdout.write('ready\n')
await once(process.stdin, 'data')
try {
  const db = database.startsWith('postgres:')
    ? await openPostgres(database, { poolSize: 2, log: { warn() {} } })
    : await openSqlite(database)
  const { length } = await db.query.selectFrom('interactions').select('id').execute()
  process.stdout.write(`found ${length}\n`)
  await db.close()
} catch (error) {
  process.stdout.write(`refused: ${(error as Error).message}\n`)
}
process.exit()
