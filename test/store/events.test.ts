/** The event log: fenced, without gaps, ended exactly once. On every backend. */
import { expect, it } from 'vitest'
import {
  appendStatements,
  endFromOutside,
  endStatements,
  insertFirstEvents,
  numberEvents,
  outputFilesStatement,
  readEvents,
} from '../../src/store/events.ts'
import { findInteraction } from '../../src/store/interactions.ts'
import { insertTurnStatement, readTurns, type Turn } from '../../src/store/turns.ts'
import { onEveryBackend } from './backends.ts'
import { append, ending, insertClaimed, said, times, typesOf } from './rows.ts'

onEveryBackend(({ open }) => {
  it('numbers events from the last one and reads them back unchanged', async () => {
    const db = await open()
    const fence = await insertClaimed(db)
    const texts = ['a', '', 'é🙂\u2028', 'a \0 b', '\ud800']
    expect(await append(db, fence, said(...texts))).toMatchObject({ ok: true })
    const events = await readEvents(db, fence.id, 1, 100)
    expect(events.map(({ seq }) => seq)).toEqual([2, 3, 4, 5, 6])
    expect(events.map(({ data }) => JSON.parse(data).text)).toEqual(texts)
    expect(await readEvents(db, fence.id, 3, 2)).toEqual(events.slice(2, 4))
    expect(await readEvents(db, fence.id, Number.MAX_SAFE_INTEGER, 1)).toEqual([])
    expect(await findInteraction(db, fence.id)).toMatchObject({ lastSeq: 6, stage: 'working' })
  })

  it.each([
    ['an epoch that is not its own', { epoch: -1 }],
    ['an epoch that is over', { epoch: 0 }],
    ['a last number that is behind', { lastSeq: 0 }],
    ['a last number that is ahead', { lastSeq: 5 }],
    ['an id that is not there', { id: 'int_none' }],
  ])('writes nothing for a writer with %s', async (_, wrong) => {
    const db = await open()
    const fence = await insertClaimed(db)
    const attempt = await append(db, { ...fence, ...wrong }, said('never'), 'settling')
    expect(attempt).toMatchObject({ ok: false, failedAt: 0, reason: 'fence' })
    expect(await typesOf(db, fence.id)).toEqual(['1 stage'])
    expect(await findInteraction(db, fence.id)).toMatchObject({ lastSeq: 1, stage: 'working' })
  })

  it('lets one of many writers with the same fence write', async () => {
    const db = await open()
    const fence = await insertClaimed(db)
    const results = await Promise.all(times(30, (i) => append(db, fence, said(`${i}`, `${i}`))))
    expect(results.filter(({ ok }) => ok)).toHaveLength(1)
    expect(await typesOf(db, fence.id)).toEqual(['1 stage', '2 partial_output', '3 partial_output'])
  })

  it('commits or rolls back statements together with their append', async () => {
    const db = await open()
    const fence = await insertClaimed(db)
    const turn: Turn = {
      asked: [],
      message: { role: 'assistant', content: [{ type: 'text', text: 'hm \0' }] },
      finish: 'stop',
      tokens: { input: 1, output: 2, cachedInput: 0, reasoning: 0 },
      atSeq: 2,
    }
    const file = { name: 'ü.txt', blob: 'b', size: 5_000_000_000, mimeType: 'text/plain', sha256: '00' }
    const withTurn = (lastSeq: number, turn: Turn) => [
      ...appendStatements(db, { ...fence, lastSeq }, numberEvents(said('x'), lastSeq), 'working', 1),
      insertTurnStatement(db, fence.id, turn),
      outputFilesStatement(db, fence, [file]),
    ]
    expect(await db.write(() => withTurn(1, turn))).toMatchObject({ ok: true })
    // Event 1 exists already, so nothing is written.
    const twice = insertFirstEvents(db, fence.id, numberEvents(said('x'), 0))
    expect(await db.write([...withTurn(2, turn), ...twice])).toMatchObject({ ok: false, failedAt: 4, reason: 'unique' })
    const next: Turn = { ...turn, finish: 'failed', atSeq: 3 }
    expect(await db.write(withTurn(2, next))).toMatchObject({ ok: true })
    expect(await readTurns(db, fence.id)).toEqual([turn, next])
    expect(await typesOf(db, fence.id)).toEqual(['1 stage', '2 partial_output', '3 partial_output'])
    expect((await findInteraction(db, fence.id))!.outputFiles).toEqual([file])
    expect(await db.write([outputFilesStatement(db, { ...fence, epoch: 7 }, [])])).toMatchObject({ reason: 'fence' })
  })

  it('ends a run with its last events and status, after which nothing is written', async () => {
    const db = await open()
    const fence = await insertClaimed(db)
    const end = ending(fence.id, { status: 'completed', stopReason: 'end_turn', at: 1_234_567_890_123 })
    const last = numberEvents([...said('bye'), ...end.events], fence.lastSeq)
    expect(await db.write(endStatements(db, { ...fence, epoch: 0 }, last, end))).toMatchObject({ failedAt: 0 })
    expect(await db.write(endStatements(db, fence, last, end))).toMatchObject({ ok: true })
    expect(await typesOf(db, fence.id)).toEqual(['1 stage', '2 partial_output', '3 completed'])
    const ended = await findInteraction(db, fence.id)
    expect(ended).toMatchObject({ status: 'completed', stopReason: 'end_turn', endedAt: end.at, lastSeq: 3 })
    expect(ended!.usage).toEqual(end.usage)
    const behind = { ...fence, lastSeq: 3 }
    expect(await append(db, behind, said('late'))).toMatchObject({ ok: false })
    expect(await db.write(endStatements(db, behind, numberEvents(end.events, 3), end))).toMatchObject({ ok: false })
    expect(await db.write(endFromOutside(db, fence.id, end))).toMatchObject({ ok: false })
    expect(await typesOf(db, fence.id)).toHaveLength(3)
  })

  it('ends a run from outside: returns the event number, fences the worker, and respects the given epoch', async () => {
    const db = await open()
    const fence = await insertClaimed(db)
    const error = { code: 'unavailable', message: 'No.', status: 503, retryable: true } as const
    const told = { type: 'error' as const, interactionId: fence.id, ...error }
    const end = ending(fence.id, { status: 'failed', error, events: [told, ...ending(fence.id).events] })
    expect(await db.write(endFromOutside(db, fence.id, end, 0))).toMatchObject({ ok: false, failedAt: 0 })
    const result = await db.write(endFromOutside(db, fence.id, end, fence.epoch))
    expect(result.ok && result.rows[0]).toEqual([{ last_seq: 3 }])
    expect(await typesOf(db, fence.id)).toEqual(['1 stage', '2 error', '3 completed'])
    expect(await findInteraction(db, fence.id)).toMatchObject({ status: 'failed', error, lastSeq: 3 })
    expect(await append(db, { ...fence, lastSeq: 3 }, said('late'))).toMatchObject({ ok: false })
  })

  it('writes one of fifty concurrent ends, from outside and by the worker, among its appends', async () => {
    const db = await open()
    const fences = await Promise.all(times(4, () => insertClaimed(db)))
    for (const fence of fences) {
      const { id } = fence
      const own = () => db.write(endStatements(db, fence, numberEvents(ending(id).events, fence.lastSeq), ending(id)))
      const outside = (i: number) => db.write(endFromOutside(db, id, ending(id), i % 2 ? undefined : fence.epoch))
      const ends = times(50, (i) => (i % 5 === 3 ? own() : outside(i)))
      const appended = append(db, fence, said('among them'))
      const won = (await Promise.all(ends)).filter(({ ok }) => ok)
      expect(won).toHaveLength(1)
      const types = await typesOf(db, id)
      expect(types).toEqual(
        (await appended).ok ? ['1 stage', '2 partial_output', '3 completed'] : ['1 stage', '2 completed'],
      )
      expect(await findInteraction(db, id)).toMatchObject({ status: 'cancelled', lastSeq: types.length })
    }
  })

  it('keeps logs that are written concurrently complete and in order', async () => {
    const db = await open()
    const fences = await Promise.all(times(12, () => insertClaimed(db)))
    const writers = fences.map(async (fence) => {
      for (let i = 0; i < 20; i++) {
        const result = await append(db, { ...fence, lastSeq: fence.lastSeq + 2 * i }, said(`${2 * i}`, `${2 * i + 1}`))
        expect(result.ok).toBe(true)
      }
    })
    await Promise.all(writers)
    for (const { id } of fences) {
      const events = await readEvents(db, id, 1, 100)
      expect(events.map(({ seq }) => seq)).toEqual(times(40, (i) => i + 2))
      expect(events.map(({ data }) => JSON.parse(data).text)).toEqual(times(40, (i) => `${i}`))
    }
  })
})
