/**
 * The peers: servers of agents that others wrote, each set up in bench/peers as its documentation says for production,
 * with one agent and one tool. They are installed at their pinned versions beside the checkout's dependencies, never
 * among them: in `~/.cache/errand-bench` (or `ERRAND_BENCH_CACHE`), without running any package's install script.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { end, launch } from './processes.ts'
import { answering, type Provider, type Side } from './sides.ts'

interface Peer {
  /** Its directory in bench/peers, and its dialect. */
  readonly directory: 'mastra' | 'voltagent' | 'langgraph' | 'opencode'
  /** Whose version is named. */
  readonly package: string
  /** Answers with 200 when it is ready. */
  readonly ready: string
  /** Errand's runs a second are to be so many times its own (V3). */
  readonly times?: number
  /** Features of Errand's run that the peer lacks, and notes on its setup. */
  readonly lacks: string
}

const UNSANDBOXED = 'runs its tool in its own process, without a sandbox'

export const PEERS = {
  VoltAgent: {
    directory: 'voltagent',
    package: '@voltagent/core',
    ready: '/agents',
    times: 10,
    lacks: `${UNSANDBOXED}; stores nothing (its memory is off; what it observed it keeps in its process), so a restart loses every run and a broken stream cannot be resumed; no keys, limits or quotas as set up`,
  },
  Mastra: {
    directory: 'mastra',
    package: '@mastra/core',
    ready: '/ready',
    times: 15,
    lacks: `${UNSANDBOXED}; stores nothing (no storage and no memory, as it comes), so a restart loses every run and a broken stream cannot be resumed; no keys, limits or quotas as set up. Its server is its adapter for Hono`,
  },
  LangGraph: {
    directory: 'langgraph',
    package: '@langchain/langgraph-api',
    ready: '/ok',
    times: 25,
    lacks: `${UNSANDBOXED}; this server calls itself one for development (LangChain’s own for production is neither open nor on npm): its queue and checkpoints are in its memory, written to files now and then; no keys as set up. Its workers are raised from 10 to as many as runs are sent`,
  },
  opencode: {
    directory: 'opencode',
    package: 'opencode-ai',
    ready: '/global/health',
    lacks: `${UNSANDBOXED}; a coding agent for one user on their machine rather than a server for many: its prompts and its other tools are sent with each call. It stores sessions (SQLite), and does not go on with a run after a restart. A run is two requests, a session and a message; its first event is seen on its stream of all events`,
  },
} as const satisfies Record<string, Peer>

export type PeerName = keyof typeof PEERS

const CACHE = process.env.ERRAND_BENCH_CACHE ?? join(homedir(), '.cache/errand-bench')
const START_TIMEOUT_MS = 120_000

/** The version that is installed here, if it is. */
export function versionOf(name: PeerName): string | undefined {
  const { directory, package: of } = PEERS[name]
  const file = join(CACHE, directory, 'node_modules', of, 'package.json')
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : undefined
}

/** Installs it where it is not, and starts it. Throws where either fails. `atOnce`: the most runs that it will be sent. */
export async function openPeer(name: PeerName, provider: Provider, atOnce: number): Promise<Side> {
  const { directory, ready } = PEERS[name]
  const place = install(directory)
  const home = mkdtempSync(join(tmpdir(), 'errand-bench-'))
  const port = await freePort()
  const env = {
    BENCH_PORT: `${port}`,
    BENCH_PROVIDER: `http://127.0.0.1:${provider.port}/v1`,
    BENCH_AT_ONCE: `${atOnce}`,
    LOG_LEVEL: 'error',
  }
  const log = join(home, 'stderr')
  const started = performance.now()
  const child = launch(process.execPath, [join(place, 'server.mjs')], { cwd: home, env, log })
  child.stdout!.resume()
  const url = `http://127.0.0.1:${port}`
  const stop = async () => {
    await end(child)
    rmSync(home, { recursive: true, force: true })
  }
  const startMs = await answering(url + ready, started, START_TIMEOUT_MS).catch(async (error) => {
    const told = readFileSync(log, 'utf8').slice(-1_000)
    await stop()
    throw new Error(`${error.message}. ${told}`)
  })
  return { name, dialect: directory, target: { url }, pid: child.pid!, startMs, stop }
}

/** Installs the peer from its lock file, again if that has changed. */
function install(directory: Peer['directory']): string {
  const from = join(import.meta.dirname, 'peers', directory)
  const place = join(CACHE, directory)
  mkdirSync(place, { recursive: true })
  cpSync(from, place, { recursive: true })
  const lock = readFileSync(join(from, 'package-lock.json'), 'utf8')
  const done = join(place, '.installed')
  if (!existsSync(done) || readFileSync(done, 'utf8') !== lock) {
    rmSync(done, { force: true })
    const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error']
    // Not `npm ci`: it refuses lock files that lack other platforms' optional packages, which npm itself leaves out.
    execFileSync('npm', ['install', '--ignore-scripts', ...quiet], {
      cwd: place,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    writeFileSync(done, lock)
  }
  return place
}

/** A port that was free a moment ago: not every peer can choose one itself. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
