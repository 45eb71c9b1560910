/** The recorder beside a fence that is broken. What it writes while it holds is seen through the front door. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createHub } from '../../src/engine/hub.ts'
import { createRecorder, RecorderLost } from '../../src/engine/recorder.ts'
import { endFromOutside } from '../../src/store/events.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { ending, insertClaimed, typesOf } from '../store/rows.ts'

it('an end that comes after the right to write was lost is refused, and holds nobody up', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'errand-recorder-'))
  const db = await openSqlite(join(directory, 'errand.db'))
  onTestFinished(async () => {
    await db.close()
    rmSync(directory, { recursive: true })
  })
  const claim = await insertClaimed(db)
  const lost: string[] = []
  const onLost = (cause: string) => lost.push(cause)
  const recorder = createRecorder({
    db,
    hub: createHub(),
    claim,
    stage: 'working',
    now: Date.now,
    observe() {},
    onLost,
  })
  const cancelled = ending(claim.id)
  await db.write(endFromOutside(db, claim.id, cancelled))

  recorder.append({ type: 'partial_output', text: 'too late' })
  await expect(recorder.flush()).rejects.toThrow(RecorderLost)
  await expect(recorder.end({ ...cancelled, status: 'failed' })).rejects.toThrow(RecorderLost)
  expect(lost).toEqual(['fenced'])
  expect(await typesOf(db, claim.id)).toEqual(['1 stage', '2 completed'])
})
