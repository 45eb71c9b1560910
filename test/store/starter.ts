/** A process of its own that opens a database when it is told to, as a starting server does: `node starter.ts PLACE`. */
import { once } from 'node:events'
import { openPostgres } from '../../src/store/postgres/postgres.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'

const place = process.argv[2]!
process.stdout.write('ready\n')
await once(process.stdin, 'data')
try {
  const db = place.startsWith('postgres:')
    ? await openPostgres(place, { poolSize: 2, log: { warn() {} } })
    : await openSqlite(place)
  const { length } = await db.query.selectFrom('interactions').select('id').execute()
  process.stdout.write(`found ${length}\n`)
  await db.close()
} catch (error) {
  process.stdout.write(`refused: ${(error as Error).message}\n`)
}
process.exit()
