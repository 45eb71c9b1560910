/** Starts nodes on one Postgres for a test: each with its own process and data directory, all with one file store. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOMY } from '../contract/invariants.ts'
import type { FakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'

export type Role = 'api' | 'worker' | 'all'

interface StartOptions {
  readonly env?: Record<string, string>
  readonly config?: object
  readonly dataDir?: string
  readonly key?: string
}

export interface Nodes {
  /**
   * Starts a node. `dataDir`: the data directory of a stopped node, to restart on it. `key`: default is the key that
   * the first api node printed.
   */
  start(role: Role, options?: StartOptions): Promise<Server>
  /** Ends all workers, also frozen ones. */
  stopWorkers(): Promise<void>
  /** Ends all nodes and deletes their directories. */
  close(): Promise<void>
}

/** Prepares nodes with leases of two seconds. `common`: configuration of all nodes. */
export function openNodes(provider: FakeProvider, database: string, common: object = {}): Nodes {
  const nodes: Server[] = []
  const workers = new Set<Server>()
  const directories: string[] = []
  const place = async (name: string) => {
    const made = await mkdtemp(join(tmpdir(), `errand-${name}-`))
    directories.push(made)
    return made
  }
  const files = place('shared')
  return {
    async start(role, { env, config, dataDir, key: given } = {}) {
      const shared = { ERRAND_BLOBS_URL: `file://${await files}`, ERRAND_LEASE_S: '2' }
      const key = given ? given : role === 'worker' ? 'none' : nodes.find((node) => node.key !== 'none')?.key
      const node = await startServer({
        provider,
        database,
        key,
        dataDir: dataDir ?? (await place('node')),
        config: { limits: ROOMY, ...common, ...config },
        env: { ...shared, ERRAND_ROLE: role, ...env },
      })
      nodes.push(node)
      if (role !== 'api') workers.add(node)
      return node
    },
    async stopWorkers() {
      await Promise.all([...workers].map(end))
      workers.clear()
    },
    async close() {
      await Promise.all(nodes.map(end))
      for (const directory of directories) await rm(directory, { recursive: true, force: true })
    },
  }
}

async function end(node: Server): Promise<void> {
  node.process.kill('SIGCONT')
  if (node.process.exitCode === null && node.process.signalCode === null) await node.stop()
}
