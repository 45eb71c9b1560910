/** The browser of a run over its life: made on first use, made anew where it ended, gone with the run. */
import { type Network, withinCeiling } from '../../domain/network.ts'
import type { SandboxProxy } from '../../egress/port.ts'
import { type ExecEnd, type Sandbox, SandboxError } from '../../sandbox/port.ts'
import type { RunScope } from '../port.ts'
import { CdpError } from './cdp.ts'
import { type Chromium, openChromium } from './chromium.ts'

export interface BrowserParts {
  /** Chromium's binary, inside the sandbox's root. */
  readonly executable: string
  readonly memoryMiB: number
  readonly pids: number
  /** The operator's: what no run goes beyond. */
  readonly ceiling: Network
}

/** Its profile, its shared memory, and downloads until they are moved. */
const WORKSPACE_MIB = 512

export interface Life {
  /** Rejects with SandboxError where none can be had. */
  get(): Promise<Chromium>
  /** What became of it, for the model; the next `get` makes another. */
  lost(chromium: Chromium): Promise<string>
  takeNews(): string[]
  close(): Promise<void>
}

const RESTARTED = 'The browser was restarted: the pages and logins of before are gone.'

export function openLife(parts: BrowserParts, run: RunScope): Life {
  const { executable, ceiling, memoryMiB, pids } = parts
  let proxy: SandboxProxy | undefined
  let opening: Promise<Chromium> | undefined
  let news: string[] = []
  let closed = false

  async function open(): Promise<Chromium> {
    proxy ??= run.openProxy('browser', networkOf(run.spec.browserNetwork ?? run.spec.network, ceiling))
    const limits = { memoryMiB, pids, workspaceMiB: WORKSPACE_MIB }
    const cell = await run.openCompanion({ name: 'browser', profile: 'browser', limits })
    if (!cell.fresh && news.length === 0) news.push(RESTARTED) // an earlier worker's
    const chromium = await start(cell, proxy)
    void chromium.ended.then(() => chromium.tabs.cdp.close())
    return chromium
  }

  async function start(cell: Sandbox, proxy: SandboxProxy): Promise<Chromium> {
    try {
      return await openChromium({ cell, executable, onConnection: proxy.handle, refusalOf: proxy.refusalOf })
    } catch (error) {
      if (error instanceof SandboxError) throw error
      run.log.error({ err: error, interactionId: run.interactionId }, 'Chromium could not be started')
      throw new SandboxError('unavailable', 'The browser could not be started; the log of the server says why.', error)
    }
  }

  return {
    async get() {
      if (closed) throw new CdpError('closed', 'The run is over.')
      const known = await opening?.catch(() => undefined)
      if (known?.alive) return known
      if (known && news.length === 0) news.push(RESTARTED)
      await known?.kill() // its listener, too
      opening = open()
      return opening
    },
    async lost(chromium) {
      await chromium.kill()
      const { end, words } = await chromium.ended
      run.log.warn({ interactionId: run.interactionId, end, words: words.slice(-1_000) }, 'a browser ended')
      news = []
      opening = undefined
      return `${why(end)} Its pages are gone; the next action starts a new one.`
    },
    takeNews() {
      const taken = news
      news = []
      return taken
    },
    async close() {
      closed = true
      const known = await opening?.catch(() => undefined)
      await known?.kill().catch(() => {})
      proxy?.close()
    },
  }
}

/**
 * A run that says nothing of its network has a browser for what is public; one with an allow-list reaches that alone;
 * neither goes beyond the operator's ceiling. Headers are put in for code alone: a page could make use of them.
 */
function networkOf(asked: Network, ceiling: Network): Network {
  const within = withinCeiling(asked, ceiling)
  return typeof within === 'object' ? { allow: within.allow } : within
}

function why(end: ExecEnd): string {
  switch (end.kind) {
    case 'memory_limit':
      return `The browser was ended because it needed more than the ${end.limitMiB} MiB of memory it has.`
    case 'lost':
      return 'The browser was lost with its sandbox.'
    default:
      return 'The browser crashed.'
  }
}
