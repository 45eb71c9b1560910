/**
 * A server whose event loop is watched while it is attacked (S18): no turn may take over 50 ms of processor time,
 * nor may a turn of the sandbox host. Each attack is made first in a small form, so that what is loaded
 * or compiled once does not count. An attack over the limit is repeated: garbage may be collected during one attack, but not during every one.
 */
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { ROOMY } from '../contract/invariants.ts'
import type { FakeProvider } from '../fake-provider.ts'
import { figure } from '../support/prove.ts'
import { type Server, startServer } from '../support/server.ts'
import { python, scripted } from '../support/tool-run.ts'
import { sampleThread } from './thread-sampler.ts'

const LIMIT_MS = 50
const TRIES = 5
const MIB = 1024 * 1024

export interface Attack {
  readonly name: string
  /** `small`: the same attack in a harmless size. */
  make(small: boolean): Promise<unknown>
}

export interface WatchedServer extends Server {
  /** Makes all attacks, one after another; fails with the names of those over the limit. */
  judgeAll(what: string, attacks: Iterable<Attack>): Promise<void>
}

interface Spent {
  /** The longest turn of the server's event loop, in milliseconds of processor time. */
  readonly server: number
  /** The same of the sandbox host's main thread, as thread-sampler.ts measures it. */
  readonly host: number
}

/** Starts a server that calls `provider` and may reach the private addresses in `allowPrivate` (`host:port`). Caller must stop it. */
export async function startWatchedServer(
  provider: FakeProvider,
  allowPrivate: readonly string[],
): Promise<WatchedServer> {
  const directory = await mkdtemp(join(tmpdir(), 'errand-turns-'))
  const turns = join(directory, 'turns')
  writeFileSync(turns, '')
  const preload = new URL('./turns.ts', import.meta.url).href
  const server = await startServer({
    provider,
    env: { NODE_OPTIONS: `--import=${preload}`, TURNS_FILE: turns },
    config: {
      limits: { ...ROOMY, runningPerProject: 10_000, queuedPerProject: 10_000, inlineFilesBytes: 20 * MIB },
      egress: { allowPrivate },
    },
  })
  // The host starts with the first sandbox.
  await server.post('/v1beta/interactions', {
    instruction: scripted(provider, [python('print(1)')]),
    tools: ['code_execution'],
  })
  const host = sampleThread(threadOfHost(server.dataDir))
  const worst = { server: 0, host: 0 }

  async function measure(attack: () => Promise<unknown>): Promise<Spent> {
    const known = readFileSync(turns, 'utf8').length
    host.take()
    await attack()
    // Includes work that the attack left for later, such as closing what it opened.
    await server.get('/healthz')
    const seen = readFileSync(turns, 'utf8').slice(known).split('\n').map(Number)
    return { server: Math.max(...seen), host: host.take() }
  }

  /** A sentence for each thread that was over the limit. */
  async function judge({ name, make }: Attack): Promise<string[]> {
    await make(true)
    let least: Spent = { server: Number.POSITIVE_INFINITY, host: Number.POSITIVE_INFINITY }
    for (let i = 0; i < TRIES && (least.server > LIMIT_MS || least.host > LIMIT_MS); i++) {
      const spent = await measure(() => make(false))
      least = { server: Math.min(least.server, spent.server), host: Math.min(least.host, spent.host) }
    }
    worst.server = Math.max(worst.server, least.server)
    worst.host = Math.max(worst.host, least.host)
    if (process.env.S18_LOG) appendFileSync(process.env.S18_LOG, `${least.server} ${least.host.toFixed(1)} ${name}\n`)
    const slow = Object.entries(least).filter(([, ms]) => ms > LIMIT_MS)
    return slow.map(([thread, ms]) => `${thread}: ${ms.toFixed(0)} ms: ${name}`)
  }

  return {
    ...server,
    async judgeAll(what, attacks) {
      const faults: string[] = []
      let count = 0
      for (const attack of attacks) {
        count++
        try {
          faults.push(...(await judge(attack)))
        } catch (cause) {
          throw new Error(`${attack.name}: ${server.output().slice(-5_000)}`, { cause })
        }
      }
      figure('S18', `attacks on ${what}`, count)
      figure('S18', `longest turn of the server during attacks on ${what}, ms`, worst.server)
      figure('S18', `longest turn of the host during attacks on ${what}, ms`, worst.host.toFixed(1))
      expect(faults).toEqual([])
      expect(server.process.exitCode).toBeNull()
    },
    async stop(signal) {
      await host.stop()
      const code = await server.stop(signal)
      await rm(directory, { recursive: true })
      return code
    },
  }
}

/** The main thread, as a directory below /proc, of the sandbox host that uses `dataDir`. */
function threadOfHost(dataDir: string): string {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const found = pids.find((pid) => {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      return command.includes('host-main') && command.includes(dataDir)
    } catch {
      return false
    }
  })
  if (found === undefined) throw new Error('There is no sandbox host.')
  return `/proc/${found}/task/${found}`
}
