/** Interactions: inserting, listing, finding due ones, and removing. On every backend. */
import { expect, it } from 'vitest'
import { madeAt } from '../../src/domain/ids.ts'
import { endFromOutside, readEvents } from '../../src/store/events.ts'
import { deleteIdempotencyKeys, findByIdempotencyKey } from '../../src/store/idempotency.ts'
import { insertInteraction } from '../../src/store/insert-interaction.ts'
import { deleteInteraction, findExpired, findInteraction } from '../../src/store/interactions.ts'
import { listInteractions } from '../../src/store/list-interactions.ts'
import type { Database } from '../../src/store/port.ts'
import { findStarved } from '../../src/store/queue.ts'
import { deleteRemovals, listRemovals, removalStatement } from '../../src/store/removals.ts'
import { insertTurnStatement, readTurns } from '../../src/store/turns.ts'
import { onEveryBackend } from './backends.ts'
import {
  backdate,
  claimant,
  countOutcomes,
  ending,
  insert,
  newInteraction,
  PROJECT,
  removal,
  SPEC,
  times,
} from './rows.ts'

const HOUR = 3_600_000
const NEWEST = { labels: {}, order: 'desc' } as const

onEveryBackend(({ open }) => {
  it('finds an inserted interaction unchanged, only within its project', async () => {
    const db = await open()
    const labels = { team: 'ü 🙂', constructor: '' }
    const interaction = newInteraction({ labels })
    expect(await insertInteraction(db, interaction, undefined)).toEqual({ outcome: 'accepted', claim: undefined })
    await backdate(db, interaction.id, 1_700_000_000_123)
    const found = await findInteraction(db, interaction.id, PROJECT)
    expect(found).toEqual({
      id: interaction.id,
      projectId: PROJECT,
      keyId: interaction.keyId,
      status: 'running',
      stage: 'queued',
      spec: SPEC,
      labels,
      createdAt: 1_700_000_000_123,
      lastSeq: 1,
      outputFiles: [],
    })
    expect(await findInteraction(db, interaction.id)).toEqual(found)
    expect(await findInteraction(db, interaction.id, 'prj_other')).toBeUndefined()
    expect(await findInteraction(db, 'int_none')).toBeUndefined()
    expect(await findInteraction(db, 'a \0 NUL')).toBeUndefined()
    await expect(insertInteraction(db, interaction, undefined)).rejects.toThrow(/unique/)
  })

  it('accepts as many interactions as may run and wait, also from concurrent submissions', async () => {
    const db = await open()
    const limits = { queuedPerProject: 4, runningPerProject: 3 }
    const submit = (projectId: string) => insertInteraction(db, newInteraction({ ...limits, projectId }), undefined)
    const both = await Promise.all(['prj_a', 'prj_b'].flatMap((id) => times(30, () => submit(id))))
    expect(countOutcomes(both)).toEqual({ accepted: 14, queue_full: 46 })
    const [first] = (await listInteractions(db, 'prj_a', NEWEST, 1)).interactions
    await db.write(endFromOutside(db, first!.id, ending(first!.id)))
    expect(countOutcomes(await Promise.all(times(10, () => submit('prj_a'))))).toEqual({ accepted: 1, queue_full: 9 })
    for (const id of ['prj_a', 'prj_b']) {
      const open = await listInteractions(db, id, { ...NEWEST, status: 'running' }, 100)
      expect(open.interactions).toHaveLength(7)
    }
  })

  it('stores one of many submissions with the same idempotency key', async () => {
    const db = await open()
    const idempotency = { key: 'k', fingerprint: 'f', notBefore: 0 }
    const interactions = times(25, () => newInteraction({ idempotency, labels: { a: 'b' } }))
    const outcomes = await Promise.all(interactions.map((each) => insertInteraction(db, each, claimant)))
    expect(countOutcomes(outcomes)).toEqual({ accepted: 1, duplicate_key: 24 })
    const winner = interactions[outcomes.findIndex(({ outcome }) => outcome === 'accepted')]!
    expect(await findByIdempotencyKey(db, PROJECT, idempotency, 0)).toEqual(heldBy(winner.id))
    expect((await listInteractions(db, PROJECT, NEWEST, 100)).interactions.map(({ id }) => id)).toEqual([winner.id])
    const labelled = await listInteractions(db, PROJECT, { ...NEWEST, labels: { a: 'b' } }, 100)
    expect(labelled.interactions).toHaveLength(1)
    expect(
      await insertInteraction(db, newInteraction({ idempotency, projectId: 'prj_other' }), undefined),
    ).toMatchObject({ outcome: 'accepted' })
  })

  it('gives the key of a run that failed with a retryable error to one of many', async () => {
    const db = await open()
    const idempotency = { key: 'k', fingerprint: 'f', notBefore: 0 }
    const find = () => findByIdempotencyKey(db, PROJECT, idempotency, 0)
    const failWith = (id: string, retryable: boolean) => {
      const error = { code: 'model_error' as const, message: 'Down.', status: 500, retryable }
      return db.write(endFromOutside(db, id, { ...ending(id), status: 'failed', error }))
    }
    const failed = await insert(db, { idempotency })
    await failWith(failed, true)
    expect(await find()).toEqual({ interactionId: failed, released: true })
    await expect(findByIdempotencyKey(db, PROJECT, { ...idempotency, fingerprint: 'g' }, 0)).rejects.toMatchObject({
      code: 'idempotency_mismatch',
    })

    const retries = times(25, () => newInteraction({ idempotency: { ...idempotency, releasedBy: failed } }))
    const outcomes = await Promise.all(retries.map((each) => insertInteraction(db, each, claimant)))
    expect(countOutcomes(outcomes)).toEqual({ accepted: 1, duplicate_key: 24 })
    const winner = retries[outcomes.findIndex(({ outcome }) => outcome === 'accepted')]!
    expect(await find()).toEqual(heldBy(winner.id))
    await failWith(winner.id, false)
    expect(await find()).toEqual(heldBy(winner.id))
    expect(await findInteraction(db, failed, PROJECT)).toMatchObject({ status: 'failed' })
  })

  it('refuses an idempotency key with another request, and forgets an expired one', async () => {
    const db = await open()
    const [old, now] = [1_000, 2_000]
    const idempotency = { key: 'k', fingerprint: 'f', notBefore: 0 }
    await insert(db, { idempotency, createdAt: old })
    const other = { key: 'k', fingerprint: 'g' }
    await expect(findByIdempotencyKey(db, PROJECT, other, 0)).rejects.toMatchObject({ code: 'idempotency_mismatch' })
    expect(await findByIdempotencyKey(db, PROJECT, other, old + 1)).toBeUndefined()
    const next = newInteraction({ idempotency: { ...other, notBefore: old + 1 }, createdAt: now })
    expect(await insertInteraction(db, next, undefined)).toMatchObject({ outcome: 'accepted' })
    expect(await findByIdempotencyKey(db, PROJECT, other, 0)).toEqual(heldBy(next.id))
    await deleteIdempotencyKeys(db, now)
    expect(await findByIdempotencyKey(db, PROJECT, other, 0)).toEqual(heldBy(next.id))
    await deleteIdempotencyKeys(db, now + 1)
    expect(await findByIdempotencyKey(db, PROJECT, other, 0)).toBeUndefined()
  })

  it('does not use up the idempotency key if the queue is full', async () => {
    const db = await open()
    const full = { queuedPerProject: 0, runningPerProject: 0 }
    const idempotency = { key: 'k', fingerprint: 'f', notBefore: 0 }
    expect(await insertInteraction(db, newInteraction({ ...full, idempotency }), undefined)).toEqual({
      outcome: 'queue_full',
    })
    expect(await findByIdempotencyKey(db, PROJECT, idempotency, 0)).toBeUndefined()
  })

  it('lists interactions without reading their output files', async () => {
    const db = await open()
    const id = await insert(db)
    const output_files = 'no JSON: reading it throws'
    await db.write([{ query: db.query.updateTable('interactions').set({ output_files }).compile() }])
    expect((await listInteractions(db, PROJECT, NEWEST, 1)).interactions).toMatchObject([{ id }])
    await expect(findInteraction(db, id)).rejects.toThrow('JSON')
  })

  it('ends a page when its specs reach 2 MiB, and continues there on the next', async () => {
    const db = await open()
    const large = { ...SPEC, instruction: 'ü'.repeat(450_000) }
    const ids: string[] = []
    for (let i = 0; i < 7; i++) ids.push(await insert(db, { spec: large, labels: { size: 'large' } }))
    for (const labels of [{}, { size: 'large' }] as Record<string, string>[]) {
      for (const order of ['asc', 'desc'] as const) {
        const pages: string[][] = []
        for (let after: string | undefined; ; after = pages.at(-1)!.at(-1)!) {
          const filter = { labels, order, ...(after !== undefined && { after }) }
          const page = await listInteractions(db, PROJECT, filter, 5)
          pages.push(page.interactions.map(({ id }) => id))
          if (!page.more) break
        }
        expect(pages.map((page) => page.length)).toEqual([3, 3, 1])
        expect(pages.flat()).toEqual(order === 'asc' ? ids : ids.toReversed())
      }
    }
  })

  it('lists interactions by age in pages, with every filter', async () => {
    const db = await open()
    const spec = (agentId: string) => ({ ...SPEC, agentId })
    const ids: string[] = []
    for (let i = 0; i < 12; i++) {
      const labels = { even: String(i % 2 === 0), third: String(i % 3 === 0) }
      const id = await insert(db, { labels, spec: i < 6 ? spec('agt_a') : SPEC })
      await backdate(db, id, madeAt(id))
      ids.push(id)
    }
    // The first eight characters of an id are its time. These ids are last and first by bytes, but not in a locale's order.
    for (const time of ['zzzzzzzz', 'ZZZZZZZZ', 'aaaaaaaa', '00000000'])
      ids.push(await insert(db, { id: `int_${time}x` }))
    await insert(db, { projectId: 'prj_other', labels: { even: 'true' } })
    for (const id of ids.slice(2, 5)) await db.write(endFromOutside(db, id, ending(id)))

    const list = async (filter: Partial<Parameters<typeof listInteractions>[2]>, limit = 100) =>
      (await listInteractions(db, PROJECT, { ...NEWEST, ...filter }, limit)).interactions.map(({ id }) => id)
    const sorted = [...ids].sort((a, b) => (a < b ? -1 : 1))
    expect(await list({ order: 'asc' })).toEqual(sorted)
    expect(await list({})).toEqual(sorted.toReversed())
    for (const order of ['asc', 'desc'] as const) {
      const paged: string[] = []
      for (;;) {
        const page = await list({ order, after: paged.at(-1) }, 5)
        paged.push(...page)
        if (page.length < 5) break
      }
      expect(paged).toEqual(await list({ order }))
    }
    const only = (want: (i: number) => boolean) => ids.slice(0, 12).filter((_, i) => want(i))
    expect(await list({ order: 'asc', agentId: 'agt_a' })).toEqual(ids.slice(0, 6))
    expect(await list({ order: 'asc', status: 'cancelled' })).toEqual(ids.slice(2, 5))
    const [from, to] = [madeAt(ids[3]!), madeAt(ids[8]!)]
    const between = only((i) => madeAt(ids[i]!) >= from && madeAt(ids[i]!) < to)
    expect(await list({ order: 'asc', createdAfter: from, createdBefore: to })).toEqual(between)
    const labelled = { labels: { even: 'true' }, createdAfter: from }
    expect(await list({ order: 'asc', ...labelled })).toEqual(only((i) => i % 2 === 0 && madeAt(ids[i]!) >= from))
    expect(await list({ keyId: 'key_none' })).toEqual([])
    expect(await list({ status: 'running' })).toHaveLength(13)
    expect(await list({ order: 'asc', labels: { even: 'true' } })).toEqual(only((i) => i % 2 === 0))
    expect(await list({ order: 'asc', labels: { even: 'true', third: 'true' } })).toEqual(only((i) => i % 6 === 0))
    const all = {
      agentId: 'agt_a',
      status: 'cancelled',
      labels: { even: 'true' },
      order: 'asc',
      after: ids[2],
    } as const
    expect(await list(all)).toEqual([ids[4]])
    expect(await list({ labels: { even: 'none' } })).toEqual([])
    expect(await list({ labels: { 'a \0 NUL': '\0' } })).toEqual([])
  })

  it('deletes only ended interactions of the project, with everything that belongs to them', async () => {
    const db = await open()
    const idempotency = { key: 'k', fingerprint: 'f', notBefore: 0 }
    const [id, kept] = [await insert(db, { idempotency, labels: { a: 'b' } }), await insert(db, { labels: { a: 'b' } })]
    const message = { role: 'assistant', content: [] } as const
    const tokens = { input: 0, output: 0, cachedInput: 0, reasoning: 0 }
    const turn = { asked: [], message, finish: 'stop', tokens, atSeq: 1 } as const
    await db.write([id, kept].map((each) => insertTurnStatement(db, each, turn)))
    expect(await deleteInteraction(db, removal(id))).toBe(false)
    await db.write(endFromOutside(db, id, ending(id)))
    expect(await deleteInteraction(db, removal(id, 'prj_other'))).toBe(false)
    const deleted = await Promise.all(times(10, () => deleteInteraction(db, removal(id))))
    expect(deleted.filter(Boolean)).toHaveLength(1)
    expect(await rowsOf(db, id)).toBe(0)
    expect(await findByIdempotencyKey(db, PROJECT, idempotency, 0)).toBeUndefined()
    expect(await rowsOf(db, kept)).toBe(5)
    expect(await listRemovals(db, 10)).toEqual([removal(id)])
    await deleteRemovals(db, 2)
    expect(await listRemovals(db, 10)).toEqual([])
  })

  it('deletes expired rows a thousand at a time', async () => {
    const db = await open()
    const { ok } = await db.write(times(2_300, (i) => removalStatement(db, removal(`int_${i}`))))
    expect(ok).toBe(true)
    const taken: number[] = []
    const watched: Database = {
      ...db,
      async write(statements) {
        const result = await db.write(statements)
        if (result.ok) taken.push(result.rows[0]!.length)
        return result
      },
    }
    await deleteRemovals(watched, 2)
    expect(taken).toEqual([1_000, 1_000, 300])
    expect(await listRemovals(db, 10)).toEqual([])
  })

  it('finds interactions that waited too long, and those that ended long ago', async () => {
    const db = await open()
    const createdAt = Date.now() - HOUR
    const waiting = await insert(db, { createdAt })
    await insert(db)
    const taken = newInteraction({ projectId: 'prj_taken' })
    expect(await insertInteraction(db, taken, claimant)).toMatchObject({ claim: { id: taken.id } })
    await backdate(db, taken.id, createdAt)
    // Settings in seconds and days need not be whole numbers of milliseconds.
    expect(await findStarved(db, HOUR / 2 + 0.5)).toMatchObject([{ id: waiting, epoch: 0, createdAt }])
    expect(await findStarved(db, 2 * HOUR)).toEqual([])

    const ended: string[] = []
    for (const hours of [3, 5, 4]) {
      const id = await insert(db, { projectId: 'prj_ended' })
      await db.write(endFromOutside(db, id, ending(id, { at: Date.now() - hours * HOUR })))
      ended.push(id)
    }
    const rows = [ended[1], ended[2], ended[0]].map((id) => ({ id, projectId: 'prj_ended' }))
    expect(await findExpired(db, HOUR + 0.5, 100)).toEqual(rows)
    expect(await findExpired(db, HOUR, 2)).toEqual(rows.slice(0, 2))
    expect(await findExpired(db, 6 * HOUR, 100)).toEqual([])
  })
})

async function rowsOf(db: Database, id: string): Promise<number> {
  const [interaction, events, turns] = [
    await findInteraction(db, id),
    await readEvents(db, id, 0, 9),
    await readTurns(db, id),
  ]
  const labels = await db.query.selectFrom('labels').select('key').where('object_id', '=', id).execute()
  const specs = await db.query.selectFrom('specs').select('spec').where('interaction_id', '=', id).execute()
  return (interaction ? 1 : 0) + events.length + turns.length + labels.length + specs.length
}

function heldBy(interactionId: string) {
  return { interactionId, released: false }
}
