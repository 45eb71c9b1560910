/** Who else is on this database: this node's sign of life, and what is known of the others. */
import { placeOf } from '../../domain/ids.ts'
import type { ModelHealth } from '../../models/port.ts'
import type { SandboxFacts } from '../../sandbox/port.ts'
import { markStopped, readNodes, type StoredNode, writeHeartbeat } from '../../store/nodes.ts'
import type { Database } from '../../store/port.ts'
import type { Log } from '../../telemetry/log.ts'

const BEAT_MS = 5_000

export interface NodesOptions {
  readonly db: Database
  readonly log: Log
  /** Undefined for one that only looks. */
  readonly self: { readonly id: string; readonly role: string; readonly version: string } | undefined
}

export interface Nodes {
  /** That lived a few seconds ago, itself included. */
  living(): readonly Pick<StoredNode, 'id' | 'role' | 'version' | 'startedAt' | 'models'>[]
  /** Whether that one lives, as it stands in the database now. */
  lives(id: string): Promise<boolean>
  /** Of the worker that was seen last, for nodes that have no sandboxes; undefined where none was seen for an hour. */
  workersFacts(): SandboxFacts | undefined
  /** Whether it has lived the longest: what one node is enough for, it sees to. Two may think so for a few seconds. */
  leads(): boolean
  /**
   * Shows itself to the others, with what its own sandboxes are where it has some, and at each sign of life how the models
   * did lately, by their names. Resolves when it is known.
   */
  join(facts: SandboxFacts, models: () => Readonly<Record<string, ModelHealth>>): Promise<void>
  close(): Promise<void>
}

/** The others are known when it resolves. */
export async function openNodes({ db, log, self }: NodesOptions): Promise<Nodes> {
  let known: readonly StoredNode[] = []
  let workersFacts: SandboxFacts | undefined
  let facts = ''
  let models = () => ({})
  let beating: Promise<void> = Promise.resolve()
  let timer: NodeJS.Timeout | undefined

  async function look(): Promise<void> {
    // One that was here before is dead, whenever it was seen.
    known = (await readNodes(db)).filter(({ id }) => id === self?.id || !self || placeOf(id) !== placeOf(self.id))
    const worker = known.find(({ role }) => role !== 'api')
    workersFacts = worker && (JSON.parse(worker.facts) as SandboxFacts)
  }

  async function beat(): Promise<void> {
    if (self) await writeHeartbeat(db, { ...self, facts, models: JSON.stringify(models()) })
    await look()
  }

  await look()

  return {
    living: () => known.filter(({ alive }) => alive),
    async lives(id) {
      await look()
      return known.some((node) => node.alive && node.id === id)
    },
    workersFacts: () => workersFacts,
    leads() {
      const living = known.filter(({ alive, id }) => alive || id === self?.id)
      const eldest = living.sort((a, b) => a.startedAt - b.startedAt || (a.id < b.id ? -1 : 1))[0]
      return !eldest || eldest.id === self?.id
    },
    async join(own, health) {
      facts = JSON.stringify(own)
      models = health
      await beat()
      timer = setInterval(() => {
        beating = beat().catch((error) => log.warn({ err: error }, 'this node could not show that it lives'))
      }, BEAT_MS)
    },
    async close() {
      clearInterval(timer)
      await beating
      if (self && timer) await markStopped(db, self.id).catch(() => {})
    },
  }
}
