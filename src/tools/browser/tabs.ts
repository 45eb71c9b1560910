/**
 * The tabs of one Chromium: which there are, which is current, what is loading, which dialogs and downloads wait. All of
 * it is what the browser told; nothing here asks a page anything.
 *
 *   tab:     attached → loading ⇄ still → crashed or closed
 *   dialog:  alert and beforeunload are accepted at once; confirm and prompt stay open until `answer`
 *   news:    what happened by itself, in sentences, until `takeNews`
 */
import type { Duplex } from 'node:stream'
import { z } from 'zod'
import { type Cdp, CdpError, createCdp, type ProtocolEvent } from './cdp.ts'
import { createDownloads, type Downloads } from './downloads.ts'

export const VIEWPORT = { width: 1280, height: 800 } as const
/** A page that opens more is not let. */
const MAX_TABS = 10
const MAX_FRAMES = 200
const MAX_NEWS = 20

export interface Dialog {
  readonly kind: 'confirm' | 'prompt'
  readonly message: string
  readonly session: string
}

export interface Tab {
  /** As the model knows it: `t1`. */
  readonly name: string
  /** Also the id of its main frame. */
  readonly target: string
  readonly session: string
  /** Frames in a process of their own, by frame id. */
  readonly sessions: Map<string, string>
  loading: boolean
  dialog: Dialog | undefined
  crashed: boolean
  /** Its page did not answer in time: a script of it may be running without end. */
  stuck: boolean
  /** A file input that was clicked while `choosing`. */
  chooser: { readonly session: string; readonly node: number } | undefined
}

export interface Tabs {
  readonly cdp: Cdp
  readonly downloads: Downloads
  readonly all: readonly Tab[]
  readonly current: Tab
  /** Makes it the current one. */
  show(tab: Tab): Promise<void>
  /** A new one, current. */
  create(): Promise<Tab>
  close(tab: Tab): Promise<void>
  answer(tab: Tab, accept: boolean, text?: string): Promise<void>
  /** Whether it came to be within the time, and before `unless` settled; looked at again at each event. */
  until(condition: () => boolean, timeoutMs: number, unless?: Promise<unknown>): Promise<boolean>
  tell(sentence: string): void
  takeNews(): string[]
}

const ID = z.string().max(100)
const ATTACHED = z.object({
  sessionId: ID,
  targetInfo: z.object({ targetId: ID, type: z.string(), openerId: ID.optional() }),
})
const DETACHED = z.object({ sessionId: ID })
const FRAME = z.object({ frameId: ID })
const DIALOG = z.object({ type: z.string(), message: z.string() })
const CHOOSER = z.object({ backendNodeId: z.int() })
const HEADER = z.object({ name: z.string(), value: z.string() })
const PAUSED = z.object({
  requestId: ID,
  responseStatusCode: z.int().optional(),
  responseHeaders: z.array(HEADER).optional(),
})
const TARGETS = z.object({ targetInfos: z.array(z.object({ targetId: ID })) })
const CREATED = z.object({ targetId: ID })

/** Resolves when the first tab is there. Rejects with CdpError. */
export async function openTabs(stream: Duplex, downloadDirectory: string, maxDownloadBytes: number): Promise<Tabs> {
  const all: Tab[] = []
  let current: Tab | undefined
  let news: string[] = []
  let count = 0
  // The tab that Chromium starts with crashed at its first page in one start of three: it is not used.
  let creating = false
  let firsts: ReadonlySet<string> = new Set()
  const watchers = new Set<() => void>()

  const tabOf = (session: string | undefined) =>
    all.find(
      (tab) => tab.session === session || (session !== undefined && [...tab.sessions.values()].includes(session)),
    )

  function tell(sentence: string): void {
    if (news.length < MAX_NEWS && !news.includes(sentence)) news.push(sentence)
  }

  /** Not awaited by the event that led to it; a refusal is a session that is gone. */
  function quietly(method: string, session: string | undefined, params = {}): void {
    cdp.call(method, { session, params }).catch((_: CdpError) => {})
  }

  function prepare(session: string, isPage: boolean): void {
    quietly('Page.enable', session)
    quietly('Target.setAutoAttach', session, {
      autoAttach: true,
      waitForDebuggerOnStart: true,
      flatten: true,
      filter: [{ type: 'iframe' }],
    })
    if (isPage) {
      quietly('Emulation.setDeviceMetricsOverride', session, { ...VIEWPORT, deviceScaleFactor: 1, mobile: false })
      quietly('Emulation.setFocusEmulationEnabled', session, { enabled: true })
    }
    quietly('Runtime.runIfWaitingForDebugger', session)
  }

  function attach(parent: string | undefined, { sessionId, targetInfo }: z.output<typeof ATTACHED>): void {
    const { targetId, type, openerId } = targetInfo
    const owner = tabOf(parent)
    if (type === 'page' && !firsts.has(targetId) && (all.length < MAX_TABS || creating)) {
      addTab(targetId, sessionId, openerId !== undefined)
    } else if (type === 'page') {
      if (!firsts.has(targetId)) tell(`The page tried to open more than ${MAX_TABS} tabs; that was refused.`)
      // One that waits for us holds its opener up, closed or not.
      quietly('Runtime.runIfWaitingForDebugger', sessionId)
      quietly('Target.closeTarget', undefined, { targetId })
    } else if (type === 'iframe' && owner && owner.sessions.size < MAX_FRAMES) {
      owner.sessions.set(targetId, sessionId)
      prepare(sessionId, false)
    } else quietly('Runtime.runIfWaitingForDebugger', sessionId)
  }

  function addTab(target: string, session: string, opened: boolean): void {
    const state = { loading: false, dialog: undefined, crashed: false, stuck: false, chooser: undefined }
    const tab: Tab = { name: `t${++count}`, target, session, sessions: new Map(), ...state }
    all.push(tab)
    prepare(session, true)
    if (current && opened) tell(`A new tab opened: ${tab.name}. It is the current one now.`)
    current = tab
  }

  function detach(session: string): void {
    const tab = all.find((each) => each.session === session)
    if (!tab) {
      for (const { sessions } of all) for (const [frame, its] of sessions) if (its === session) sessions.delete(frame)
      return
    }
    all.splice(all.indexOf(tab), 1)
    if (tab !== current) return
    current = all.at(-1)
    tell(
      current ? `Tab ${tab.name} was closed; ${current.name} is the current one now.` : `Tab ${tab.name} was closed.`,
    )
  }

  function openDialog(tab: Tab, session: string, { type, message }: z.output<typeof DIALOG>): void {
    const said = JSON.stringify(message.slice(0, 2_000))
    if (type === 'confirm' || type === 'prompt') {
      tab.dialog = { kind: type, message: said, session }
      return
    }
    tell(
      type === 'alert'
        ? `The page showed an alert: ${said}. It was accepted.`
        : 'The page asked whether to leave it; yes was answered.',
    )
    quietly('Page.handleJavaScriptDialog', session, { accept: true })
  }

  /** A document that is to be saved: told to the browser as an attachment. */
  function saved(
    { requestId, responseStatusCode: code = 0, responseHeaders = [] }: z.output<typeof PAUSED>,
    session: string | undefined,
  ) {
    if (code < 200 || code > 299) {
      quietly('Fetch.continueRequest', session, { requestId })
      return
    }
    const isDisposition = ({ name }: { name: string }) => name.toLowerCase() === 'content-disposition'
    const named = responseHeaders.find(isDisposition)?.value.replace(/^[^;]*/, '') ?? ''
    const headers = [
      ...responseHeaders.filter((header) => !isDisposition(header)),
      { name: 'content-disposition', value: `attachment${named}` },
    ]
    quietly('Fetch.continueResponse', session, { requestId, responseCode: code, responseHeaders: headers })
  }

  const handlers: Readonly<Record<string, (event: ProtocolEvent, tab: Tab | undefined) => void>> = {
    'Target.attachedToTarget': ({ params, session }) => attach(session, ATTACHED.parse(params)),
    'Target.detachedFromTarget': ({ params }) => detach(DETACHED.parse(params).sessionId),
    'Inspector.targetCrashed': (_, tab) => {
      if (tab) tab.crashed = true
    },
    'Page.frameStartedLoading': ({ params }, tab) => {
      if (tab?.target === FRAME.parse(params).frameId) tab.loading = true
    },
    'Page.frameStoppedLoading': ({ params }, tab) => {
      if (tab?.target === FRAME.parse(params).frameId) tab.loading = false
    },
    'Page.javascriptDialogOpening': ({ params, session }, tab) => {
      if (tab && session) openDialog(tab, session, DIALOG.parse(params))
    },
    'Page.javascriptDialogClosed': (_, tab) => {
      if (tab) tab.dialog = undefined
    },
    'Page.fileChooserOpened': ({ params, session }, tab) => {
      if (tab && session) tab.chooser = { session, node: CHOOSER.parse(params).backendNodeId }
    },
    'Fetch.requestPaused': ({ params, session }) => saved(PAUSED.parse(params), session),
    'Browser.downloadWillBegin': ({ params }) => downloads.begin(params),
    'Browser.downloadProgress': ({ params }) => downloads.progress(params),
  }

  const cdp = createCdp(stream, (event) => {
    try {
      handlers[event.method]?.(event, tabOf(event.session))
    } catch {
      return // no Chromium speaks like this: what it wanted to tell is not known
    }
    for (const look of watchers) look()
  })
  stream.once('close', () => {
    for (const look of watchers) look()
  })
  const downloads = createDownloads(maxDownloadBytes, (guid) => quietly('Browser.cancelDownload', undefined, { guid }))

  function until(condition: () => boolean, timeoutMs: number, unless?: Promise<unknown>): Promise<boolean> {
    if (condition()) return Promise.resolve(true)
    return new Promise((resolve) => {
      const end = (met: boolean) => {
        clearTimeout(timer)
        watchers.delete(look)
        resolve(met)
      }
      const look = () => {
        if (condition()) end(true)
        else if (stream.destroyed) end(false)
      }
      const timer = setTimeout(end, timeoutMs, false)
      watchers.add(look)
      const giveUp = () => end(false)
      unless?.then(giveUp, giveUp)
    })
  }

  async function create(): Promise<Tab> {
    creating = true
    try {
      const { targetId } = await cdp.call('Target.createTarget', { params: { url: 'about:blank' }, answer: CREATED })
      await until(() => all.some(({ target }) => target === targetId), 5_000)
      const tab = all.find(({ target }) => target === targetId)
      if (!tab) throw new CdpError('malformed', 'A tab was not made.')
      current = tab
      return tab
    } finally {
      creating = false
    }
  }

  await cdp.call('Browser.setDownloadBehavior', {
    params: { behavior: 'allowAndName', downloadPath: downloadDirectory, eventsEnabled: true },
  })
  const { targetInfos } = await cdp.call('Target.getTargets', { answer: TARGETS })
  firsts = new Set(targetInfos.map(({ targetId }) => targetId))
  await cdp.call('Target.setAutoAttach', {
    params: { autoAttach: true, waitForDebuggerOnStart: true, flatten: true, filter: [{ type: 'page' }] },
  })
  await create()

  return {
    cdp,
    downloads,
    all,
    get current() {
      return current!
    },
    create,
    until,
    tell,
    async show(tab) {
      await cdp.call('Target.activateTarget', { params: { targetId: tab.target } })
      current = tab
    },
    async close(tab) {
      await cdp.call('Target.closeTarget', { params: { targetId: tab.target } })
      await until(() => !all.includes(tab), 5_000)
      if (all.length === 0) await create()
    },
    async answer(tab, accept, text) {
      const { dialog } = tab
      if (!dialog) return
      tab.dialog = undefined
      const params = { accept, ...(text !== undefined && { promptText: text }) }
      await cdp.call('Page.handleJavaScriptDialog', { session: dialog.session, params })
    },
    takeNews() {
      const taken = news
      news = []
      return taken
    },
  }
}
