/** The nodes on this database: writes this node's heartbeat and reads the others'. */
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
  /** Undefined for a process that only reads. */
  readonly self: { readonly id: string; readonly role: string; readonly version: string } | undefined
}

export interface Nodes {
  /** Nodes with a recent heartbeat, including this one. */
  living(): readonly Pick<StoredNode, 'id' | 'role' | 'version' | 'startedAt' | 'models'>[]
  /** Whether a node is alive, by a fresh read of the database. */
  lives(id: string): Promise<boolean>
  /** Facts of the last seen worker, for nodes without sandboxes. Undefined if none was seen for an hour. */
  workersFacts(): SandboxFacts | undefined
  /** True for the oldest living node. It does maintenance for all. For a few seconds, two nodes may return true. */
  leads(): boolean
  /**
   * Registers this node with facts about its sandboxes. Each heartbeat includes the models' recent health by name. Resolves
   * when the first heartbeat is stored.
   */
  join(facts: SandboxFacts, models: () => Readonly<Record<string, ModelHealth>>): Promise<void>
  close(): Promise<void>
}

/** Has read the other nodes when it resolves. */
export async function openNodes({ db, log, self }: NodesOptions): Promise<Nodes> {
  let known: readonly StoredNode[] = []
  let workersFacts: SandboxFacts | undefined
  let facts = ''
  let models = () => ({})
  let beating: Promise<void> = Promise.resolve()
  let timer: NodeJS.Timeout | undefined

  async function look(): Promise<void> {
    // An earlier process of this data directory is dead, even with a recent heartbeat.
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
        beating = beat().catch((error) => log.warn({ err: error }, 'could not write the heartbeat of this node'))
      }, BEAT_MS)
    },
    async close() {
      clearInterval(timer)
      await beating
      if (self && timer) await markStopped(db, self.id).catch(() => {})
    },
  }
}
