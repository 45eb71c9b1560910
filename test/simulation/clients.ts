/**
 * Callers of a simulated world: they submit, follow, disconnect, reconnect to another node, repeat requests, cancel,
 * approve and delete.
 */
import { ErrandError } from '../../src/domain/errors.ts'
import type { StoredEvent } from '../../src/domain/event.ts'
import type { RunRequest } from '../../src/domain/interaction.ts'
import type { Engine, SubmitOptions } from '../../src/engine/engine.ts'
import type { Journal } from './journal.ts'
import { Disconnected, type Node } from './nodes.ts'
import type { Process, Scheduler } from './scheduler.ts'

export interface Callers {
  readonly scheduler: Scheduler
  readonly journal: Journal
  /** Picks any node, possibly a dead one. */
  readonly anyNode: () => Node
}

const PROJECTS = ['prj_one', 'prj_two']
/** Maximum number of attempts of a request that fails because no server answers. */
const TRIES = 30

/** One caller's script. Resolves when the caller has finished. */
export async function callerStory(name: string, startsMs: number, callers: Callers): Promise<void> {
  const { scheduler, journal } = callers
  const { random, chance } = scheduler
  const me: Process = { name, state: 'running', skewMs: 0 }
  await scheduler.sleep(me, startsMs, 'comes')
  const projectId = random.pick(PROJECTS)
  const key = chance(0.5) ? `key of ${name}` : undefined
  const request = planRequest(name, random)
  const once = () => submit(callers, me, projectId, request, key)
  const ids = await Promise.all(key !== undefined && chance(0.3) ? [once(), once(), once()] : [once()])
  const id = ids.find((each) => each !== undefined)
  if (id === undefined) return
  const doings = [followToEnd(callers, me, projectId, id, 0)]
  if (chance(0.3)) doings.push(followToEnd(callers, me, projectId, id, random.whole(0, 20)))
  if (chance(0.25)) doings.push(cancelLater(callers, me, projectId, id, random.next() * 8_000))
  if (key !== undefined && chance(0.3)) doings.push(repeatLater(callers, me, once))
  await Promise.all(doings)
  if (chance(0.2)) await remove(callers, me, projectId, id)
  else if (chance(0.3) && journal.interactions.get(id)!.row.status === 'completed') {
    const next = await submit(callers, me, projectId, { ...request, previousInteractionId: id }, undefined)
    if (next !== undefined) await followToEnd(callers, me, projectId, next, 0)
  }
}

function planRequest(name: string, random: Scheduler['random']): RunRequest {
  const file = (i: number) =>
    random.next() < 0.5
      ? { name: `in-${i}.txt`, bytes: Buffer.from(`file ${i} of ${name}`) }
      : { name: `linked-${i}.txt`, url: `https://files.example/${encodeURIComponent(name)}/${i}` }
  return {
    instruction: `Do what ${name} wants.`,
    settings: {
      tools: random.next() < 0.75 ? ['code_execution', 'file_read', 'file_write'] : [],
      policy: {
        maxTurnDuration: random.next() < 0.2 ? random.whole(1, 5) : random.whole(5, 40),
        maxOutputTokens: random.next() < 0.2 ? random.whole(1, 60) : 10_000,
        ...(random.next() < 0.1 && { maxCost: 0.0001 }),
      },
    },
    labels: { caller: 'simulated' },
    files: Array.from({ length: random.next() < 0.3 ? random.whole(1, 3) : 0 }, (_, i) => file(i)),
    onDisconnect: 'continue',
    ...(random.next() < 0.3 && { webhook: { url: 'https://hooks.example/', revision: '2026-05-20' } }),
    warnings: [],
  }
}

/** Returns undefined if the request was refused, or if the caller can't know whether it was accepted. */
async function submit(
  callers: Callers,
  me: Process,
  projectId: string,
  request: RunRequest,
  key: string | undefined,
): Promise<string | undefined> {
  const options: SubmitOptions = {
    strict: false,
    keyId: 'key_simulated',
    ...(key !== undefined && { idempotency: { key, fingerprint: request.instruction } }),
  }
  // A request without an idempotency key must not be repeated if it may have been accepted.
  const again = key === undefined ? isUnavailable : isPassing
  const submitted = await persist(callers, me, 'submit', again, (engine) => engine.submit(projectId, request, options))
  if (submitted) callers.journal.acknowledged(submitted.interactionId, key)
  return submitted?.interactionId
}

/** Follows the events after `after`, reconnecting to random nodes, and checks every event that it receives. */
async function followToEnd(callers: Callers, me: Process, projectId: string, id: string, after: number): Promise<void> {
  const { scheduler, journal, anyNode } = callers
  let last = after
  for (;;) {
    const node = anyNode()
    const gone = new AbortController()
    let log: AsyncIterator<readonly StoredEvent[]> | undefined
    try {
      for (;;) {
        const batch = await node.ask(me, `events of ${id} behind ${last}`, async (engine) => {
          log ??= engine.follow(projectId, id, last, gone.signal)[Symbol.asyncIterator]()
          return log.next()
        })
        if (batch.done) {
          const known = journal.interactions.get(id)
          // A follower that starts after the last event receives nothing.
          if (known?.removed || (known && last >= known.events.length && known.row.status !== 'running')) return
          journal.violation(id, `a follower was disconnected after event ${last} of ${known?.events.length}`)
          return
        }
        journal.shown(id, batch.value)
        for (const { seq } of batch.value) {
          if (seq !== last + 1) journal.violation(id, `I4: a follower got event ${seq} after ${last}`)
          last = seq
        }
        if (batch.value.at(-1)?.type === 'completed') return
        if (scheduler.chance(0.05)) throw new Disconnected('the caller breaks off')
        if (scheduler.chance(0.1)) await scheduler.sleep(me, scheduler.random.next() * 3_000, 'reads slowly')
      }
    } catch {
      scheduler.schedule(node.process, 1, `${me.name} is gone`, () => gone.abort())
      await scheduler.sleep(me, 50 + scheduler.random.next() * 1_000, 'comes back')
    }
  }
}

async function cancelLater(callers: Callers, me: Process, projectId: string, id: string, inMs: number): Promise<void> {
  await callers.scheduler.sleep(me, inMs, 'will cancel')
  const by = await persist(callers, me, `cancel ${id}`, isPassing, async (engine, node) => {
    await engine.cancel(projectId, id)
    return node
  })
  if (by) callers.journal.cancelled(id, by.process)
}

async function repeatLater({ scheduler }: Callers, me: Process, once: () => Promise<unknown>): Promise<void> {
  await scheduler.sleep(me, scheduler.random.next() * 10_000, 'will ask again')
  await once()
}

async function remove(callers: Callers, me: Process, projectId: string, id: string): Promise<void> {
  await persist(callers, me, `remove ${id}`, isPassing, (engine) => engine.remove(projectId, id, 'key_simulated'))
}

/** Approves or denies all pending tool calls. Finds them in the database instead of asking for each interaction. */
export async function personStory(
  callers: Callers,
  waiting: () => readonly { id: string; projectId: string }[],
  isOver: () => boolean,
): Promise<void> {
  const { scheduler } = callers
  const me: Process = { name: 'person', state: 'running', skewMs: 0 }
  while (!isOver()) {
    await scheduler.sleep(me, 500 + scheduler.random.next() * 2_000, 'looks')
    for (const { id, projectId } of waiting()) {
      const verdict = { all: { approve: scheduler.chance(0.7) } }
      const decide = (engine: Engine) => engine.approve(projectId, id, verdict, 'key_person')
      await callers
        .anyNode()
        .ask(me, `decides on ${id}`, decide)
        .catch(() => {})
    }
  }
}

/** Repeats a request until it succeeds, is refused permanently, or has failed TRIES times. */
async function persist<T>(
  { scheduler, anyNode }: Callers,
  me: Process,
  what: string,
  again: (error: unknown) => boolean,
  act: (engine: Engine, node: Node) => Promise<T>,
): Promise<T | undefined> {
  for (let tries = 0; tries < TRIES; tries++) {
    const node = anyNode()
    try {
      return await node.ask(me, what, (engine) => act(engine, node))
    } catch (error) {
      if (!again(error)) return undefined
      await scheduler.sleep(me, 200 + scheduler.random.next() * 2_000, `will try again to ${what}`)
    }
  }
  return undefined
}

function isUnavailable(error: unknown): boolean {
  return error instanceof ErrandError && error.code === 'unavailable'
}

/** Whether the engine gave no final answer, so that a retry may succeed. */
function isPassing(error: unknown): boolean {
  return !(error instanceof ErrandError) || isUnavailable(error)
}
