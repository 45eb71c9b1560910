/**
 * The sides of the bench, each a server in a process of its own: the bare limit, Errand as it is set up by default (its
 * limits raised so far that none is met), and the peers (peers.ts).
 */
import type { ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { stringify } from 'yaml'
import type { DialectName, Target } from './dialects.ts'
import { openPeer, PEERS, type PeerName } from './peers.ts'
import { end, launch, said } from './processes.ts'

export type SideName = 'bare' | 'Errand' | 'Errand with sandbox' | PeerName

export interface Side {
  readonly name: SideName
  readonly dialect: DialectName
  readonly target: Target
  /** All of its processes descend from this one. */
  readonly pid: number
  /** From its start to its first 200, milliseconds. */
  readonly startMs: number
  stop(): Promise<void>
}

const MANY = 1_000_000_000
export const ROOMY = {
  interactionsPerMinute: MANY,
  callsPerMinute: MANY,
  runningPerProject: 10_000,
  streamsPerProject: 10_000,
  queuedPerProject: 10_000,
}
/** `script/bench` names the built program, which the package and the image have; else the bench takes the source. */
const BUILT = process.env.BENCH_ERRAND
/** Node's, `--cpu-prof` and the like. */
const FLAGS = process.env.BENCH_NODE_FLAGS?.split(' ')
const [PROGRAM, ERRAND] = FLAGS
  ? [process.execPath, [...FLAGS, BUILT ?? join(import.meta.dirname, '../src/main.ts'), 'serve']]
  : [BUILT ?? join(import.meta.dirname, '../script/errand'), ['serve']]
/** Errand's tool in its own process: it gives the text of a skill of the operator's. */
const SKILL = '---\nname: lookup\ndescription: Knows the answer.\n---\ndone\n'

export interface Provider {
  readonly port: number
  /** Lets all that are held go on. */
  release(): Promise<void>
  stop(): Promise<void>
}

/** The fake provider; each answer waits `delayMs` first. */
export async function openProvider(delayMs = 0): Promise<Provider> {
  const child = launch(process.execPath, [join(import.meta.dirname, 'provider.ts'), `${delayMs}`])
  const port = Number((await said(child, /(\d+)\n/))[1])
  return {
    port,
    async release() {
      await fetch(`http://127.0.0.1:${port}/release`)
    },
    stop: () => end(child),
  }
}

/** `atOnce`: the most runs that it will be sent. */
export function openSide(name: SideName, provider: Provider, atOnce: number): Promise<Side> {
  if (name === 'bare') return openBare(provider)
  if (name in PEERS) return openPeer(name as PeerName, provider, atOnce)
  return openErrand(provider, name === 'Errand' ? {} : { sandbox: true })
}

async function openBare({ port }: Provider): Promise<Side> {
  const started = performance.now()
  const child = launch(process.execPath, [join(import.meta.dirname, 'bare.ts'), `${port}`])
  const url = `http://127.0.0.1:${(await said(child, /(\d+)\n/))[1]}`
  const startMs = await answering(url, started)
  return { name: 'bare', dialect: 'bare', target: { url }, pid: child.pid!, startMs, stop: () => end(child) }
}

export interface ErrandOptions {
  /** Its runs use `code_execution`, else a tool in its own process. */
  readonly sandbox?: boolean
  /** Over what stands here. */
  readonly config?: Readonly<Record<string, unknown>>
  readonly env?: Readonly<Record<string, string>>
  /** Existing data directory. Default: a temporary one, which is removed with the side. */
  readonly dataDir?: string
  /** Key of an earlier server on the same database. */
  readonly key?: string
}

export interface Errand extends Side {
  readonly dataDir: string
  readonly child: ChildProcess
}

export async function openErrand(provider: Provider, options: ErrandOptions = {}): Promise<Errand> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'errand-bench-'))
  mkdirSync(join(dataDir, 'skills/lookup'), { recursive: true })
  writeFileSync(join(dataDir, 'skills/lookup/SKILL.md'), SKILL)
  const file = join(dataDir, 'errand.yaml')
  const baseUrl = `http://127.0.0.1:${provider.port}/v1`
  const models = { 'svc-3.5-flash': { provider: 'openai-compatible', baseUrl, model: 'fake', idleTimeoutS: 600 } }
  const config = { models, limits: ROOMY, workerSlots: 10_000, log: 'warn', ...options.config }
  writeFileSync(file, stringify(config))
  const started = performance.now()
  const env = { ERRAND_CONFIG: file, ERRAND_DATA_DIR: dataDir, ERRAND_PORT: '0', ...options.env }
  const log = join(dataDir, 'stderr')
  const child = launch(PROGRAM, ERRAND, { env, log })
  const first = options.key === undefined ? /(http:\/\/[\d.:]+)[\s\S]*?(errand_sk_\w{38})/ : /(http:\/\/[\d.:]+)/
  const [, url = '', key = options.key] = await said(child, first).catch((error) => {
    throw new Error(`${error.message}. ${readFileSync(log, 'utf8').slice(-2_000)}`)
  })
  const startMs = await answering(`${url}/healthz`, started)
  return {
    name: options.sandbox ? 'Errand with sandbox' : 'Errand',
    dialect: 'errand',
    target: { url, key, ...(options.sandbox ? { tools: ['code_execution'] } : { skills: ['lookup'] }) },
    pid: child.pid!,
    startMs,
    dataDir,
    child,
    async stop() {
      await end(child)
      if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** Milliseconds since `started` when it first answers with 200. */
export async function answering(url: string, started: number, timeoutMs = 60_000): Promise<number> {
  for (;;) {
    const status = await fetch(url, { signal: AbortSignal.timeout(1_000) }).then(
      (answer) => answer.status,
      () => 0,
    )
    if (status === 200) return performance.now() - started
    if (performance.now() - started > timeoutMs) throw new Error(`${url} did not answer with 200 in time`)
    await sleep(5)
  }
}
