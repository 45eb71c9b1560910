/** The recorder whose write is undone. What it writes otherwise is seen through the front door. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createHub } from '../../src/engine/hub.ts'
import { createRecorder, RecorderStopped } from '../../src/engine/run/recorder.ts'
import { endFromOutside } from '../../src/store/events.ts'
import type { Database } from '../../src/store/port.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'
import { ending, insertClaimed, typesOf } from '../store/rows.ts'

async function openRecorder() {
  const directory = mkdtempSync(join(tmpdir(), 'errand-recorder-'))
  const db = await openSqlite(join(directory, 'errand.db'))
  onTestFinished(async () => {
    await db.close()
    rmSync(directory, { recursive: true })
  })
  const claim = await insertClaimed(db)
  const stops: [cause: string, message: string | undefined][] = []
  const recorder = createRecorder({
    db,
    hub: createHub(),
    claim,
    stage: 'working',
    now: Date.now,
    emit() {},
    onStopped: (cause, error) => stops.push([cause, error?.message]),
  })
  return { db, claim, recorder, stops }
}

it('an end that comes after the right to write was lost is refused, and holds nobody up', async () => {
  const { db, claim, recorder, stops } = await openRecorder()
  const cancelled = ending(claim.id)
  await db.write(endFromOutside(db, claim.id, cancelled))

  recorder.append({ type: 'partial_output', text: 'too late' })
  await expect(recorder.flush()).rejects.toThrow(RecorderStopped)
  await expect(recorder.end({ ...cancelled, status: 'failed' })).rejects.toThrow(RecorderStopped)
  expect(stops).toEqual([['fenced', undefined]])
  expect(recorder.reopen()).toBeUndefined()
  expect(await typesOf(db, claim.id)).toEqual(['1 stage', '2 completed'])
})

it.each([
  [
    'breaks a unique key',
    (db: Database) => ({ query: db.query.insertInto('projects').values(PROJECT_ROW).compile() }),
    /statement 2 violated a unique key: insert into "projects"/,
  ],
  [
    'touches a wrong number of rows',
    (db: Database) => ({ query: db.query.deleteFrom('keys').where('id', '=', 'none').compile(), rows: 1 }),
    /statement 2 affected a wrong number of rows: delete from "keys"/,
  ],
])('a statement that %s is a defect, and the end is written without what came with it', async (_, statement, why) => {
  const { db, claim, recorder, stops } = await openRecorder()
  await db.write([{ query: db.query.insertInto('projects').values(PROJECT_ROW).compile() }])
  recorder.append({ type: 'partial_output', text: 'kept' })
  await recorder.flush()
  recorder.append({ type: 'partial_output', text: 'refused' })
  recorder.attach(() => statement(db))
  await expect(recorder.flush()).rejects.toThrow(RecorderStopped)
  expect(stops).toEqual([['defect', expect.stringMatching(why)]])
  recorder.append({ type: 'partial_output', text: 'ignored' })
  await recorder.reopen()!.end(ending(claim.id, { status: 'failed' }))
  expect(await typesOf(db, claim.id)).toEqual(['1 stage', '2 partial_output', '3 completed'])
})

const PROJECT_ROW = { id: 'prj_other', account_id: 'acc_other', name: 'other', created_at: 1 }
