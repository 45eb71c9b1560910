/** A backup as in docs/postgres.md: made by the role that owns the tables, complete in spite of row-level security. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { findInteraction } from '../../src/store/interactions.ts'
import type { Database } from '../../src/store/port.ts'
import { openPostgres } from '../../src/store/postgres/postgres.ts'
import { findPostgres } from '../support/cluster.ts'
import { closingAfterEach, onPostgres, quiet } from './backends.ts'
import { append, insertClaimed, PROJECT, said, typesOf } from './rows.ts'

const run = promisify(execFile)

onPostgres('back-ups', (cluster) => {
  const opened = closingAfterEach<Database>()

  it('contains all projects’ rows, and restores to an equal database', async () => {
    const [from, to] = [await cluster().createDatabase(), await cluster().createDatabase()]
    const db = opened(await openPostgres(from, { log: quiet }))
    const fence = await insertClaimed(db)
    await append(db, fence, said('kept'))
    const place = mkdtempSync(join(tmpdir(), 'errand-backup-'))
    const env = { ...process.env, PGOPTIONS: '-c errand.project=*' }
    const program = (name: string) => join(findPostgres()!, name)
    await run(program('pg_dump'), ['--enable-row-security', '-Fc', '-f', `${place}/errand.dump`, from], { env })
    await run(program('pg_restore'), ['--no-owner', '-d', to, `${place}/errand.dump`], { env })
    rmSync(place, { recursive: true })

    const restored = opened(await openPostgres(to, { log: quiet }))
    expect(await typesOf(restored.forProject(PROJECT), fence.id)).toEqual(['1 stage', '2 partial_output'])
    expect(await findInteraction(restored.forProject('prj_other'), fence.id)).toBeUndefined()
  })
})
