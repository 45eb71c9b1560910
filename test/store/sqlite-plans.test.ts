/**
 * No read on SQLite scans or sorts a table that grows. The test records the queries that operations send and explains them.
 * Without statistics, as on a server, SQLite's planner considers only the indexes, so the tables need no rows.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { listEvents, readEvents, readProgress } from '../../src/store/events.ts'
import { readFrame } from '../../src/store/frames.ts'
import { findByIdempotencyKey } from '../../src/store/idempotency.ts'
import { findExpired, findInteraction, knownInteractions } from '../../src/store/interactions.ts'
import { listInteractions } from '../../src/store/list-interactions.ts'
import type { Database } from '../../src/store/port.ts'
import { findStarved, readQueue } from '../../src/store/queue.ts'
import { listRemovals } from '../../src/store/removals.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'
import { readTurns } from '../../src/store/turns.ts'
import { PROJECT } from './rows.ts'

const ID = 'int_000010020'
const NEWEST = { labels: {}, order: 'desc' } as const

const dir = mkdtempSync(join(tmpdir(), 'errand-test-'))
let db: Database
let planner: DatabaseSync
beforeAll(async () => {
  db = await openSqlite(join(dir, 'errand.db'))
  planner = new DatabaseSync(join(dir, 'errand.db'), { readOnly: true })
})
afterAll(async () => {
  planner.close()
  await db.close()
  rmSync(dir, { recursive: true })
})

/** SQLite's plan of the operation's reads, one line a step. */
async function planOf(operation: () => Promise<unknown>): Promise<string[]> {
  const spy = vi.spyOn(DatabaseSync.prototype, 'prepare')
  try {
    await operation()
    const texts = spy.mock.calls.map(([text]) => text)
    expect(texts.length).toBeGreaterThan(0)
    return texts.flatMap((text) =>
      planner
        .prepare(`explain query plan ${text}`)
        .all()
        .map(({ detail }) => `${detail}`),
    )
  } finally {
    spy.mockRestore()
  }
}

it.each<[string, RegExp, () => Promise<unknown>]>([
  ['reading an interaction', /project_id=\? AND id=\?/, () => findInteraction(db, ID, PROJECT)],
  ['reading events', /\(interaction_id=\? AND seq>\?\)/, () => readEvents(db, ID, 2, 500)],
  ['listing events', /\(interaction_id=\? AND seq>\?\)/, () => listEvents(db, ID, { pageSize: 20, after: '3' })],
  ['reading progress', /\(id=\?\)/, () => readProgress(db, ID)],
  ['reading the frame', /\(interaction_id=\?\)/, () => readFrame(db, ID)],
  ['reading turns', /\(interaction_id=\?\)/, () => readTurns(db, ID)],
  ['listing interactions', /by_age \(project_id=\?\)/, () => listInteractions(db, PROJECT, NEWEST, 21)],
  [
    'listing behind one',
    /by_age \(project_id=\? AND id<\?\)/,
    () => listInteractions(db, PROJECT, { ...NEWEST, after: ID }, 21),
  ],
  [
    'listing by time',
    /by_age \(project_id=\? AND id>\? AND id<\?\)/,
    () => listInteractions(db, PROJECT, { ...NEWEST, createdAfter: 1, createdBefore: 2 }, 21),
  ],
  [
    'listing by status',
    /by_status \(project_id=\? AND status=\?\)/,
    () => listInteractions(db, PROJECT, { ...NEWEST, status: 'failed' }, 21),
  ],
  [
    'listing by key',
    /by_key \(project_id=\? AND key_id=\?\)/,
    () => listInteractions(db, PROJECT, { ...NEWEST, keyId: 'key_1' }, 21),
  ],
  [
    'listing by model',
    /by_model \(project_id=\? AND model=\?\)/,
    () => listInteractions(db, PROJECT, { ...NEWEST, model: 'fake' }, 21),
  ],
  [
    'listing by agent',
    /by_agent \(project_id=\? AND agent_id=\?\)/,
    () => listInteractions(db, PROJECT, { ...NEWEST, agentId: 'agt_1' }, 21),
  ],
  [
    'listing by label',
    /labels.*\(project_id=\? AND kind=\? AND key=\? AND value=\?\)/,
    () => listInteractions(db, PROJECT, { ...NEWEST, labels: { team: 'a' } }, 21),
  ],
  [
    'finding by an idempotency key',
    /\(project_id=\? AND key=\?\)/,
    () => findByIdempotencyKey(db, PROJECT, { key: 'k', fingerprint: 'f' }, 0),
  ],
  ['finding what is past its time', /interactions_ended \(ended_at<\?\)/, () => findExpired(db, 1_000, 100)],
  ['telling known from unknown', /\(id=\?\)/, () => knownInteractions(db, [ID])],
])('uses an index for %s', async (_name, search, operation) => {
  const plan = await planOf(operation)
  // Only `i`, a page of interactions, is scanned and sorted afterwards.
  const pageAt = plan.indexOf('SCAN i')
  const walked = pageAt === -1 ? plan : plan.slice(0, pageAt)
  const faults = walked.filter((step) => /^SCAN (?!CONSTANT|json_each)|TEMP B-TREE/.test(step))
  expect(faults, plan.join('\n')).toEqual([])
  expect(plan.join('\n')).toMatch(search)
})

it.each<[string, RegExp, () => Promise<unknown>]>([
  [
    'finding those that wait too long',
    /interactions USING (COVERING )?INDEX interactions_open/,
    () => findStarved(db, 1_000),
  ],
  ['measuring the queue', /interactions USING (COVERING )?INDEX interactions_open/, () => readQueue(db)],
  ['listing what was removed', /removals USING INDEX removals_by_age/, () => listRemovals(db, 20)],
])('scans only an index of the relevant rows for %s', async (_name, walk, operation) => {
  const plan = await planOf(operation)
  expect(
    plan.filter((step) => /^SCAN \w+$|TEMP B-TREE FOR ORDER/.test(step)),
    plan.join('\n'),
  ).toEqual([])
  expect(plan.join('\n')).toMatch(walk)
})
