/**
 * The tabs of one Chromium: which exist, which is current, what is loading, and which dialogs and downloads are open. All
 * state comes from the browser's events; nothing here asks a page.
 *
 *   tab:     attached → loading ⇄ idle → crashed or closed
 *   dialog:  alert and beforeunload are accepted at once; confirm and prompt stay open until `answer`
 */
import type { Duplex } from 'node:stream'
import { z } from 'zod'
import { type Cdp, CdpError, createCdp, type ProtocolEvent } from './cdp.ts'
import { createConditions, type Until } from './conditions.ts'
import { createDownloads, type Downloads } from './downloads.ts'
import { createNotices, type Notices } from './notices.ts'
import type { Tab } from './tab.ts'
import { createTabRegistry, ID, type Send, type TabRegistry } from './tab-registry.ts'

export interface Tabs {
  readonly cdp: Cdp
  readonly downloads: Downloads
  readonly notices: Notices
  readonly all: readonly Tab[]
  readonly current: Tab
  /** Makes the tab the current one. */
  show(tab: Tab): Promise<void>
  /** Opens a tab and makes it the current one. */
  create(): Promise<Tab>
  close(tab: Tab): Promise<void>
  /** Answers the tab's dialog. */
  answer(tab: Tab, accept: boolean, text?: string): Promise<void>
  readonly until: Until
}

const TARGETS = z.object({ targetInfos: z.array(z.object({ targetId: ID })) })
const CREATED = z.object({ targetId: ID })

/** Resolves when the first tab is open. Rejects with CdpError. */
export async function openTabs(stream: Duplex, downloadDirectory: string, maxDownloadBytes: number): Promise<Tabs> {
  const notices = createNotices()
  const { until, check } = createConditions(stream)
  const send: Send = (method, session, params = {}) => {
    cdp.call(method, { session, params: { ...params } }).catch((_: CdpError) => {})
  }
  const registry = createTabRegistry(send, notices)
  const downloads = createDownloads(maxDownloadBytes, (guid) => send('Browser.cancelDownload', undefined, { guid }))
  const handlers = eventHandlers(registry, downloads, notices, send)
  const cdp = createCdp(stream, (event) => {
    try {
      handlers[event.method]?.(event, registry.tabOf(event.session))
    } catch {
      return // A malformed event, which no genuine Chromium sends.
    }
    check()
  })

  async function create(): Promise<Tab> {
    registry.creating = true
    try {
      const { targetId } = await cdp.call('Target.createTarget', { params: { url: 'about:blank' }, answer: CREATED })
      await until(() => registry.all.some(({ target }) => target === targetId), 5_000)
      const tab = registry.all.find(({ target }) => target === targetId)
      if (!tab) throw new CdpError('malformed', 'The tab was not opened.')
      registry.current = tab
      return tab
    } finally {
      registry.creating = false
    }
  }

  await cdp.call('Browser.setDownloadBehavior', {
    params: { behavior: 'allowAndName', downloadPath: downloadDirectory, eventsEnabled: true },
  })
  // The tab that Chromium starts with is not used: in one of three starts it crashed at its first page.
  const { targetInfos } = await cdp.call('Target.getTargets', { answer: TARGETS })
  registry.startupTargets = new Set(targetInfos.map(({ targetId }) => targetId))
  await cdp.call('Target.setAutoAttach', {
    params: { autoAttach: true, waitForDebuggerOnStart: true, flatten: true, filter: [{ type: 'page' }] },
  })
  await create()

  return {
    cdp,
    downloads,
    notices,
    all: registry.all,
    get current() {
      return registry.current!
    },
    create,
    until,
    async show(tab) {
      await cdp.call('Target.activateTarget', { params: { targetId: tab.target } })
      registry.current = tab
    },
    async close(tab) {
      await cdp.call('Target.closeTarget', { params: { targetId: tab.target } })
      await until(() => !registry.all.includes(tab), 5_000)
      if (registry.all.length === 0) await create()
    },
    async answer(tab, accept, text) {
      const { dialog } = tab
      if (!dialog) return
      tab.dialog = undefined
      const params = { accept, ...(text !== undefined && { promptText: text }) }
      await cdp.call('Page.handleJavaScriptDialog', { session: dialog.session, params })
    },
  }
}

const FRAME = z.object({ frameId: ID })
const DIALOG = z.object({ type: z.string(), message: z.string() })
const CHOOSER = z.object({ backendNodeId: z.int() })
const HEADER = z.object({ name: z.string(), value: z.string() })
const PAUSED = z.object({
  requestId: ID,
  responseStatusCode: z.int().optional(),
  responseHeaders: z.array(HEADER).optional(),
})

type Handler = (event: ProtocolEvent, tab: Tab | undefined) => void

/** By protocol method. A handler throws ZodError if its event is malformed. */
function eventHandlers(
  { attach, detach }: TabRegistry,
  downloads: Downloads,
  notices: Notices,
  send: Send,
): Readonly<Record<string, Handler>> {
  return {
    'Target.attachedToTarget': ({ params, session }) => attach(session, params),
    'Target.detachedFromTarget': ({ params }) => detach(params),
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
      if (tab && session) openDialog(tab, session, DIALOG.parse(params), notices, send)
    },
    'Page.javascriptDialogClosed': (_, tab) => {
      if (tab) tab.dialog = undefined
    },
    'Page.fileChooserOpened': ({ params, session }, tab) => {
      if (tab && session) tab.chooser = { session, node: CHOOSER.parse(params).backendNodeId }
    },
    'Fetch.requestPaused': ({ params, session }) => forceDownload(PAUSED.parse(params), session, send),
    'Browser.downloadWillBegin': ({ params }) => downloads.begin(params),
    'Browser.downloadProgress': ({ params }) => downloads.progress(params),
  }
}

function openDialog(
  tab: Tab,
  session: string,
  { type, message }: z.output<typeof DIALOG>,
  notices: Notices,
  send: Send,
): void {
  const quoted = JSON.stringify(message.slice(0, 2_000))
  if (type === 'confirm' || type === 'prompt') {
    tab.dialog = { kind: type, message: quoted, session }
    return
  }
  notices.add(
    type === 'alert'
      ? `The page showed an alert: ${quoted}. It was accepted.`
      : 'The page asked for confirmation before leaving it; this was accepted.',
  )
  send('Page.handleJavaScriptDialog', session, { accept: true })
}

/** Marks a successful response as an attachment, so that Chromium downloads it instead of showing it. */
function forceDownload(
  { requestId, responseStatusCode: code = 0, responseHeaders = [] }: z.output<typeof PAUSED>,
  session: string | undefined,
  send: Send,
): void {
  if (code < 200 || code > 299) {
    send('Fetch.continueRequest', session, { requestId })
    return
  }
  const isDisposition = ({ name }: { name: string }) => name.toLowerCase() === 'content-disposition'
  const parameters = responseHeaders.find(isDisposition)?.value.replace(/^[^;]*/, '') ?? ''
  const headers = [
    ...responseHeaders.filter((header) => !isDisposition(header)),
    { name: 'content-disposition', value: `attachment${parameters}` },
  ]
  send('Fetch.continueResponse', session, { requestId, responseCode: code, responseHeaders: headers })
}
