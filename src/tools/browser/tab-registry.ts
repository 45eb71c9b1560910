/** The list of tabs, kept by the browser's attach and detach events. Tabs above the maximum are closed at once. */
import { z } from 'zod'
import type { Notices } from './notices.ts'
import { type Tab, VIEWPORT } from './tab.ts'

const MAX_TABS = 10
/** Maximum number of frames with a process of their own, for one tab. */
const MAX_FRAMES = 200

export const ID = z.string().max(100)
const ATTACHED = z.object({
  sessionId: ID,
  targetInfo: z.object({ targetId: ID, type: z.string(), openerId: ID.optional() }),
})
const DETACHED = z.object({ sessionId: ID })

/** Sends a call without waiting for its answer. Refusals are ignored: the session is gone. */
export type Send = (method: string, session: string | undefined, params?: object) => void

export interface TabRegistry {
  readonly all: readonly Tab[]
  current: Tab | undefined
  /** True while Errand itself opens a tab, which the maximum does not apply to. */
  creating: boolean
  /** Targets that existed before Errand attached. They are closed. */
  startupTargets: ReadonlySet<string>
  tabOf(session: string | undefined): Tab | undefined
  /** Both throw ZodError if the event is malformed. */
  attach(parent: string | undefined, params: unknown): void
  detach(params: unknown): void
}

export function createTabRegistry(send: Send, notices: Notices): TabRegistry {
  const all: Tab[] = []
  let count = 0

  function prepare(session: string, isPage: boolean): void {
    send('Page.enable', session)
    send('Target.setAutoAttach', session, {
      autoAttach: true,
      waitForDebuggerOnStart: true,
      flatten: true,
      filter: [{ type: 'iframe' }],
    })
    if (isPage) {
      send('Emulation.setDeviceMetricsOverride', session, { ...VIEWPORT, deviceScaleFactor: 1, mobile: false })
      send('Emulation.setFocusEmulationEnabled', session, { enabled: true })
    }
    send('Runtime.runIfWaitingForDebugger', session)
  }

  function addTab(target: string, session: string, openedByPage: boolean): void {
    const state = { loading: false, dialog: undefined, crashed: false, unresponsive: false, chooser: undefined }
    const tab: Tab = { name: `t${++count}`, target, session, sessions: new Map(), ...state }
    all.push(tab)
    prepare(session, true)
    if (registry.current && openedByPage) notices.add(`A new tab opened: ${tab.name}. It is the current one now.`)
    registry.current = tab
  }

  const registry: TabRegistry = {
    all,
    current: undefined,
    creating: false,
    startupTargets: new Set(),
    tabOf: (session) =>
      all.find(
        (tab) => tab.session === session || (session !== undefined && [...tab.sessions.values()].includes(session)),
      ),
    attach(parent, params) {
      const { sessionId, targetInfo } = ATTACHED.parse(params)
      const { targetId, type, openerId } = targetInfo
      const owner = registry.tabOf(parent)
      const isStartup = registry.startupTargets.has(targetId)
      if (type === 'page' && !isStartup && (all.length < MAX_TABS || registry.creating)) {
        addTab(targetId, sessionId, openerId !== undefined)
      } else if (type === 'page') {
        if (!isStartup) notices.add(`The page tried to open more than ${MAX_TABS} tabs; the rest were blocked.`)
        // Its opener hangs until it runs, even if it is closed.
        send('Runtime.runIfWaitingForDebugger', sessionId)
        send('Target.closeTarget', undefined, { targetId })
      } else if (type === 'iframe' && owner && owner.sessions.size < MAX_FRAMES) {
        owner.sessions.set(targetId, sessionId)
        prepare(sessionId, false)
      } else send('Runtime.runIfWaitingForDebugger', sessionId)
    },
    detach(params) {
      const { sessionId } = DETACHED.parse(params)
      const tab = all.find((each) => each.session === sessionId)
      if (!tab) {
        for (const { sessions } of all) {
          for (const [frame, session] of sessions) if (session === sessionId) sessions.delete(frame)
        }
        return
      }
      all.splice(all.indexOf(tab), 1)
      if (tab !== registry.current) return
      const next = all.at(-1)
      registry.current = next
      notices.add(`Tab ${tab.name} was closed${next ? `; ${next.name} is the current one now` : ''}.`)
    },
  }
  return registry
}
