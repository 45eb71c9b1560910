/** The browser of one run: started on first use, restarted after a crash, ended with the run. */
import { type Network, withinCeiling } from '../../domain/network.ts'
import type { SandboxProxy } from '../../egress/port.ts'
import { type ExecEnd, type Sandbox, SandboxError } from '../../sandbox/port.ts'
import type { RunScope } from '../port.ts'
import { CdpError } from './cdp.ts'
import { type Chromium, openChromium } from './chromium.ts'

export interface BrowserSettings {
  /** The path of Chromium's binary inside the sandbox's root. */
  readonly executable: string
  readonly memoryMiB: number
  readonly pids: number
  /** The operator's limit on the network of every run. */
  readonly ceiling: Network
}

/** Size of the workspace, which holds Chromium's profile, its shared memory, and downloads until they are moved. */
const WORKSPACE_MIB = 512

export interface Lifecycle {
  /** Starts the browser if none is running. Rejects with SandboxError if it can't be started. */
  get(): Promise<Chromium>
  /** Explains to the model why the browser ended. The next `get` starts another. */
  explainEnd(chromium: Chromium): Promise<string>
  /** Returns the messages for the model since the last call. */
  takeNotices(): string[]
  close(): Promise<void>
}

const RESTARTED = 'The browser was restarted: earlier pages and sign-ins are gone.'

export function openLifecycle(settings: BrowserSettings, run: RunScope): Lifecycle {
  const { executable, ceiling, memoryMiB, pids } = settings
  let proxy: SandboxProxy | undefined
  let opening: Promise<Chromium> | undefined
  let notices: string[] = []
  let closed = false

  async function open(): Promise<Chromium> {
    proxy ??= run.openProxy('browser', networkOf(run.spec.browserNetwork ?? run.spec.network, ceiling))
    const limits = { memoryMiB, pids, workspaceMiB: WORKSPACE_MIB }
    const cell = await run.openCompanion({ name: 'browser', profile: 'browser', limits })
    if (!cell.fresh && notices.length === 0) notices.push(RESTARTED) // An earlier worker of this run had a browser.
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
      throw new SandboxError(
        'unavailable',
        'The browser could not be started. See the server log for the reason.',
        error,
      )
    }
  }

  return {
    async get() {
      if (closed) throw new CdpError('closed', 'The run is over.')
      const known = await opening?.catch(() => undefined)
      if (known?.alive) return known
      if (known && notices.length === 0) notices.push(RESTARTED)
      await known?.kill() // Also closes its listener.
      opening = open()
      return opening
    },
    async explainEnd(chromium) {
      await chromium.kill()
      const { end, stderr } = await chromium.ended
      run.log.warn({ interactionId: run.interactionId, end, stderr: stderr.slice(-1_000) }, 'a browser ended')
      notices = []
      opening = undefined
      return `${describeEnd(end)} Its pages are gone; the next action starts a new one.`
    },
    takeNotices() {
      const taken = notices
      notices = []
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
 * The network of the browser: what the run allows, within the operator's ceiling. Credentials of `network.inject` are left
 * out, because a page could make use of them.
 */
function networkOf(requested: Network, ceiling: Network): Network {
  const within = withinCeiling(requested, ceiling)
  return typeof within === 'object' ? { allow: within.allow } : within
}

function describeEnd(end: ExecEnd): string {
  switch (end.kind) {
    case 'memory_limit':
      return `The browser was ended because it needed more than its ${end.limitMiB} MiB of memory.`
    case 'lost':
      return 'The browser was lost with its sandbox.'
    default:
      return 'The browser crashed.'
  }
}
