/** Usage sums: each end is counted once, by whichever process, and the sum is the same before and after rows are moved. */
import { expect, it } from 'vitest'
import type { Usage } from '../../src/domain/usage.ts'
import type { Claim } from '../../src/store/claim-row.ts'
import { endFromOutside, endStatements, numberEvents } from '../../src/store/events.ts'
import { deleteInteraction } from '../../src/store/interactions.ts'
import type { Database } from '../../src/store/port.ts'
import { middleOf, readUsage, sumEndedUsage, type UsageGroup, type UsageQuestion } from '../../src/store/usage.ts'
import { onEveryBackend } from './backends.ts'
import { ending, insertClaimed, PROJECT, removal, SPEC, times, USAGE } from './rows.ts'

const AT = Date.parse('2026-03-31T23:59:59.999Z')
const MONTH = { projectIds: [PROJECT], from: '2026-03-01', to: '2026-03-31', groups: [] } as const

const figures = async (db: Database, question: Partial<UsageQuestion> = {}) => {
  const parts = await readUsage(db, { ...MONTH, ...question }, 1_000)
  const sum = { runs: 0, failed: 0, cancelled: 0, inputTokens: 0, outputTokens: 0 }
  for (const part of parts) for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += part[name]
  return { ...sum, costNanos: parts.reduce((nanos, part) => nanos + part.costNanos, 0n) }
}

function used(changes: Partial<Usage> = {}): Usage {
  return { ...USAGE, cost: { amount: '0.000000007', currency: 'USD' }, ...changes }
}

function end(db: Database, fence: Claim, status: string, usage = used(), at = AT) {
  const how = ending(fence.id, { status, usage, at, countedFor: fence })
  return db.write(endStatements(db, fence, numberEvents(how.events, fence.lastSeq), how))
}

onEveryBackend(({ open, createPlace, openAt }) => {
  it('counts each end once, by any writer and with any number of tries, and keeps it after a removal', async () => {
    const db = await open()
    const [done, failed, cancelled] = [await insertClaimed(db), await insertClaimed(db), await insertClaimed(db)]
    await insertClaimed(db)
    expect(await end(db, done, 'completed')).toMatchObject({ ok: true })
    expect(await end(db, done, 'completed')).toMatchObject({ ok: false, failedAt: 0 })
    expect(await end(db, { ...failed, epoch: 0 }, 'failed')).toMatchObject({ ok: false, failedAt: 0 })
    expect(await end(db, failed, 'failed')).toMatchObject({ ok: true })
    const outside = () => db.write(endFromOutside(db, cancelled.id, ending(cancelled.id, { usage: used(), at: AT })))
    const attempts = await Promise.all([outside(), end(db, cancelled, 'completed'), outside(), outside()])
    expect(attempts.filter(({ ok }) => ok)).toHaveLength(1)
    const both = { runs: 3, failed: 1, inputTokens: 3, outputTokens: 6, costNanos: 21n }
    expect(await figures(db)).toMatchObject(both)
    expect(await deleteInteraction(db, removal(done.id))).toBe(true)
    expect(await figures(db)).toMatchObject(both)
    expect(await figures(db.forProject(PROJECT))).toMatchObject(both)
    expect(await figures(db, { projectIds: ['prj_other'] })).toMatchObject({ runs: 0 })
  })

  it('keeps the sums when rows are moved, also by several processes at once and among new rows', async () => {
    const db = await open()
    const fences = await Promise.all(
      times(60, (i) => insertClaimed(db, { keyId: `key_${i % 2}`, spec: { ...SPEC, model: `m${i % 3}` } })),
    )
    const endAll = (some: readonly Claim[]) =>
      Promise.all(
        some.map((fence, i) => end(db, fence, i % 5 === 0 ? 'failed' : 'completed', used({ duration_ms: i }))),
      )
    await endAll(fences.slice(0, 40))
    const groups: readonly UsageGroup[] = ['day', 'project', 'agent', 'model', 'key']
    const before = await readUsage(db, { ...MONTH, groups }, 1_000)
    await Promise.all([sumEndedUsage(db, 25), sumEndedUsage(db, 25), sumEndedUsage(db, 25)])
    expect(await readUsage(db, { ...MONTH, groups }, 1_000)).toEqual(before)
    await Promise.all([endAll(fences.slice(40)), sumEndedUsage(db, 25)])
    while ((await sumEndedUsage(db, 25)) > 0);
    expect(await figures(db)).toMatchObject({
      runs: 60,
      failed: 12,
      inputTokens: 60,
      outputTokens: 120,
      costNanos: 420n,
    })
    expect(await figures(db, { model: 'm1', keyId: 'key_0' })).toMatchObject({ runs: 10 })
  })

  it('counts a run on the UTC day of its end, and includes both days of a query', async () => {
    const db = await open()
    await end(db, await insertClaimed(db), 'completed', used(), AT)
    await end(db, await insertClaimed(db), 'completed', used(), AT + 1)
    expect(await figures(db, { from: '2026-03-31' })).toMatchObject({ runs: 1 })
    const days = await readUsage(db, { ...MONTH, to: '2026-04-01', groups: ['day'] }, 10)
    expect(days.map(({ of, runs }) => [of.day, runs])).toEqual([
      ['2026-03-31', 1],
      ['2026-04-01', 1],
    ])
  })

  it('counts earlier ends at the upgrade, and fills the models for the lists’ filter', async () => {
    const place = await createPlace()
    const db = await openAt(place)
    const ends = [
      await insertClaimed(db, { spec: { ...SPEC, agentId: 'a' } }),
      await insertClaimed(db, { spec: { ...SPEC, model: 'm', instruction: '\\\0 \ud800 "model":"x"' } }),
      await insertClaimed(db, { keyId: 'key_two' }),
    ]
    await insertClaimed(db)
    const spent = { amount: '12.345678901', currency: 'USD' } as const
    await end(db, ends[0]!, 'failed', used({ duration_ms: 59_999, input_tokens: 1_000_000, cost: spent }))
    await end(db, ends[1]!, 'cancelled', used({ duration_ms: 0 }), AT + 1)
    await end(db, ends[2]!, 'completed', { ...USAGE, duration_ms: 1 })
    const groups: readonly UsageGroup[] = ['day', 'project', 'agent', 'model', 'key']
    const april = { ...MONTH, to: '2026-04-01', groups }
    const before = await readUsage(db, april, 1_000)
    expect(before.map(({ runs }) => runs)).toEqual([1, 1, 1])
    for (const text of [
      'drop table usage',
      'drop table usage_ends',
      'drop index interactions_by_model',
      'drop index interactions_by_key',
      'alter table interactions drop column model',
      "delete from migrations where name = '0015-usage'",
    ]) {
      await db.write([{ query: { sql: text, parameters: [] } }])
    }
    await db.close()
    const after = await openAt(place)
    expect(await readUsage(after, april, 1_000)).toEqual(before)
    const models = await after.query.selectFrom('interactions').select('model').orderBy('id').execute()
    expect(models.map(({ model }) => model)).toEqual(['fake', 'm', 'fake', 'fake'])
  })

  it('adds exactly beyond the range of a JavaScript number', async () => {
    const db = await open()
    const cost = { amount: '5000000.000000001', currency: 'USD' } as const
    for (const _ of times(3, Number)) await end(db, await insertClaimed(db), 'completed', used({ cost }))
    const exact = BigInt(Math.round(Number(cost.amount) * 1e9)) * 3n
    expect((await figures(db)).costNanos).toBe(exact)
    await sumEndedUsage(db, 10)
    expect((await figures(db)).costNanos).toBe(exact)
  })

  it('represents a bucket by a value within a tenth of every duration in it', async () => {
    const db = await open()
    for (const duration_ms of [1, 2, 3, 9, 10, 11, 99, 1_000, 59_999, 60_000, 3_600_000, 28_800_000]) {
      const projectId = `prj_${duration_ms}`
      await end(db, await insertClaimed(db, { projectId }), 'completed', used({ duration_ms }))
      const [part] = await readUsage(db, { ...MONTH, projectIds: [projectId] }, 10)
      expect(Math.abs(middleOf(part!.bucket) - duration_ms) / duration_ms).toBeLessThan(0.1)
    }
  })
})
