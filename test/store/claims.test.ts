/** Claims and leases: each interaction is claimed once, project limits hold, and leases use the database's clock. On every backend. */
import { expect, it } from 'vitest'
import type { Claim } from '../../src/store/claim-row.ts'
import { begunEvent, claimOldest } from '../../src/store/claims.ts'
import { endFromOutside, readEvents } from '../../src/store/events.ts'
import { insertInteraction } from '../../src/store/insert-interaction.ts'
import { expireLeases, readOwnersInSameDirectory, renewLeases } from '../../src/store/leases.ts'
import type { Database } from '../../src/store/port.ts'
import { anyQueued, readQueue, requeue } from '../../src/store/queue.ts'
import { onEveryBackend } from './backends.ts'
import {
  append,
  claimant,
  ending,
  insert,
  insertClaimed,
  newInteraction,
  PROJECT,
  said,
  times,
  typesOf,
} from './rows.ts'

onEveryBackend(({ open, openAt, createPlace }) => {
  it('claims the oldest waiting interaction, with the data that its worker needs', async () => {
    const db = await open()
    expect(await claimOldest(db, claimant)).toBeUndefined()
    const createdAt = Date.now() - 5_000
    const [first, second] = [await insert(db, { createdAt }), await insert(db)]
    const claim = (await claimOldest(db, claimant))!
    expect(claim).toMatchObject({ id: first, projectId: PROJECT, epoch: 1, lastSeq: 1, attempts: 1, createdAt })
    expect(claim.startedAt).toBeGreaterThan(createdAt)
    expect(claim.claimedAt).toBeGreaterThanOrEqual(claim.startedAt)
    expect(await claimOldest(db, claimant)).toMatchObject({ id: second })
    expect(await claimOldest(db, claimant)).toBeUndefined()
    expect(await anyQueued(db)).toBe(false)
    expect(await append(db, claim, said('mine'))).toMatchObject({ ok: true })
  })

  it('claims each interaction once among eight concurrent claimants on two nodes', async () => {
    const place = await createPlace()
    const nodes = [await openAt(place), await openAt(place)]
    const ids = await Promise.all(times(60, (i) => insert(nodes[i % 2]!, { projectId: `prj_${i % 5}` })))
    const claims = await claimAll(nodes, ids.length)
    expect(claims.map(({ id }) => id).sort()).toEqual([...ids].sort())
    expect(new Set(claims.map(({ epoch }) => epoch))).toEqual(new Set([1]))
    expect(await claimOldest(nodes[0]!, claimant)).toBeUndefined()
  })

  it('keeps to a project’s limit among concurrent claims and submissions, and uses all of it', async () => {
    const place = await createPlace()
    const nodes = [await openAt(place), await openAt(place)]
    const limited = { ...claimant, runningPerProject: 3 }
    for (const projectId of ['prj_a', 'prj_b']) for (let i = 0; i < 10; i++) await insert(nodes[0]!, { projectId })
    const submit = (db: Database, projectId: string) => insertInteraction(db, newInteraction({ projectId }), limited)
    const submitted = times(20, (i) => submit(nodes[i % 2]!, i % 3 ? 'prj_a' : 'prj_c'))
    const claimed = times(8, async (i) => {
      while (await claimOldest(nodes[i % 2]!, limited));
    })
    await Promise.all([...submitted, ...claimed])
    while (await claimOldest(nodes[0]!, limited));
    const rows = await nodes[0]!.query
      .selectFrom('interactions')
      .select(['project_id', (s) => s.fn.countAll<number>().as('count')])
      .where('lease_until', '>', 0)
      .groupBy('project_id')
      .orderBy('project_id')
      .execute()
    expect(rows).toEqual(['prj_a', 'prj_b', 'prj_c'].map((project_id) => ({ project_id, count: 3 })))
  })

  it('claims a new interaction immediately if its project has room and none is older', async () => {
    const db = await open()
    const one = { ...claimant, runningPerProject: 1 }
    const claimOf = async (projectId: string) => {
      const inserted = await insertInteraction(db, newInteraction({ projectId }), one)
      return inserted.outcome === 'accepted' ? inserted.claim : undefined
    }
    const claimed = await claimOf('prj_a')
    expect(claimed).toMatchObject({ epoch: 1, lastSeq: 2, stage: 'working', attempts: 1 })
    const told = [{ seq: 1, type: 'stage', data: '{"stage":"queued"}' }, begunEvent(claimed!)]
    expect(await readEvents(db, claimed!.id, 0, 10)).toEqual(told)
    expect(await claimOf('prj_a')).toBeUndefined()
    const waiting = await insert(db, { projectId: 'prj_b' })
    expect(await claimOf('prj_b')).toBeUndefined()
    expect(await typesOf(db, waiting)).toEqual(['1 stage'])
    expect(await anyQueued(db)).toBe(true)
    expect(await claimOldest(db, one)).toMatchObject({ id: waiting, stage: 'queued', lastSeq: 1 })
    expect(await claimOldest(db, one)).toBeUndefined()
  })

  it('skips full projects and the claimant’s own runs to reach what waits behind them', async () => {
    const db = await open()
    const short = { ...claimant, leaseMs: 0, runningPerProject: 1 }
    const own = await insertLapsed(db, short, 'prj_own')
    await insertClaimed(db, { projectId: 'prj_full' })
    await insert(db, { projectId: 'prj_full' })
    const behind = await insert(db, { projectId: 'prj_z' })
    const except = { ...short, leaseMs: 60_000, except: [own] }
    expect(await claimOldest(db, except)).toMatchObject({ id: behind })
    expect(await claimOldest(db, except)).toBeUndefined()
    expect(await claimOldest(db, { ...except, except: [] })).toMatchObject({ id: own, epoch: 2, attempts: 2 })
  })

  it('renews leases only for their owner, and raises the epoch when it claims an expired one', async () => {
    const db = await open()
    const fence = await insertClaimed(db)
    const ended = await insertClaimed(db)
    await db.write(endFromOutside(db, ended.id, ending(ended.id)))
    const ids = [fence.id, ended.id, 'int_none']
    expect(await renewLeases(db, 'stranger', 60_000, ids)).toEqual(new Map())
    expect(await claimOldest(db, claimant)).toBeUndefined()
    expect(await renewLeases(db, claimant.owner, -0.5, ids)).toEqual(new Map([[fence.id, 1]]))
    const again = (await claimOldest(db, { ...claimant, owner: 'home.other' }))!
    expect(again).toMatchObject({ id: fence.id, epoch: 2, attempts: 2 })
    expect(await renewLeases(db, claimant.owner, 60_000, ids)).toEqual(new Map())
    expect(await append(db, fence, said('stale'))).toMatchObject({ ok: false, failedAt: 0 })
    expect(await append(db, again, said('mine'))).toMatchObject({ ok: true })
  })

  it('requeues a run, and counts no attempt if that was planned', async () => {
    const db = await open()
    const fence = await insertClaimed(db)
    await requeue(db, { id: fence.id, epoch: 7 }, claimant.owner, { planned: true })
    expect(await claimOldest(db, claimant)).toBeUndefined()
    await requeue(db, fence, claimant.owner, { planned: true })
    const again = (await claimOldest(db, claimant))!
    expect(again).toMatchObject({ id: fence.id, epoch: 2, attempts: 1 })
    await requeue(db, again, claimant.owner, { planned: false })
    expect(await claimOldest(db, claimant)).toMatchObject({ id: fence.id, epoch: 3, attempts: 2 })
  })

  it('leaves a run of another data directory to processes that restart there, for a while', async () => {
    const db = await open()
    const elsewhere = { ...claimant, owner: 'away.worker' }
    const released = await insertClaimed(db)
    await requeue(db, released, claimant.owner, { planned: true })
    expect(await claimOldest(db, elsewhere)).toBeUndefined()
    expect(await claimOldest(db, { ...claimant, owner: 'home.next' })).toMatchObject({ id: released.id, epoch: 2 })
    const AT_HOME_MS = 5_000
    await renewLeases(db, 'home.next', 1_000 - AT_HOME_MS, [released.id])
    expect(await claimOldest(db, elsewhere)).toBeUndefined()
    await renewLeases(db, 'home.next', -AT_HOME_MS, [released.id])
    expect(await claimOldest(db, elsewhere)).toMatchObject({ id: released.id, epoch: 3 })
    // Any process may claim an interaction that was never claimed.
    const fresh = await insert(db)
    expect(await claimOldest(db, elsewhere)).toMatchObject({ id: fresh })
  })

  it('ends the leases of a dead process immediately, and keeps those of others', async () => {
    const db = await open()
    const dead = await insertClaimed(db)
    const elsewhere = (await insertInteraction(db, newInteraction({}), { ...claimant, owner: 'away.worker' }))!
    expect(await readOwnersInSameDirectory(db, 'home.next')).toEqual([claimant.owner])
    expect(await readOwnersInSameDirectory(db, claimant.owner)).toEqual([])
    await expireLeases(db, claimant.owner)
    expect(await readOwnersInSameDirectory(db, 'home.next')).toEqual([])
    expect(await claimOldest(db, { ...claimant, owner: 'home.next' })).toMatchObject({ id: dead.id, epoch: 2 })
    expect(await claimOldest(db, { ...claimant, owner: 'home.next' })).toBeUndefined()
    expect(elsewhere).toBeDefined()
  })

  it('reports how many run, how many wait, and for how long', async () => {
    const db = await open()
    expect(await readQueue(db)).toEqual({ running: 0, queued: 0, oldestWaitMs: 0 })
    await insertClaimed(db)
    await insertClaimed(db)
    const over = await insertClaimed(db)
    await db.write(endFromOutside(db, over.id, ending(over.id)))
    await insert(db, { createdAt: Date.now() - 3_600_000 })
    const queue = await readQueue(db)
    expect(queue).toMatchObject({ running: 2, queued: 1 })
    expect(Math.round(queue.oldestWaitMs / 60_000)).toBe(60)
  })
})

async function insertLapsed(db: Database, claimant: Parameters<typeof claimOldest>[1], projectId: string) {
  const inserted = await insertInteraction(db, newInteraction({ projectId }), claimant)
  if (inserted.outcome !== 'accepted' || !inserted.claim) throw new Error(inserted.outcome)
  return inserted.claim.id
}

/** Eight claimants that continue until `count` are claimed. One may get `undefined` because the others were faster. */
async function claimAll(nodes: readonly Database[], count: number): Promise<Claim[]> {
  const claims: Claim[] = []
  const claimants = times(8, async (i) => {
    while (claims.length < count) {
      const claim = await claimOldest(nodes[i % nodes.length]!, { ...claimant, owner: `worker ${i}` })
      if (claim) claims.push(claim)
      // SQLite reads are synchronous, so yield to let the results of other claimants arrive.
      else await new Promise(setImmediate)
    }
  })
  await Promise.all(claimants)
  return claims
}
