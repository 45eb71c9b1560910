/**
 * One Chromium in a cell of its own: started there, spoken to over its pipe, its only way out the guard's proxy, which
 * answers on a port of the cell's own loopback. Its sandbox is on (never `--no-sandbox`): a page that breaks out of its
 * renderer stands in the browser's cell, which has no network, no files of the run and no secret.
 */
import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ExecEnd, type Sandbox, SandboxError } from '../../sandbox/port.ts'
import { DOWNLOADS, MAX_DOWNLOAD_BYTES } from './files.ts'
import { createInput, type Input } from './input.ts'
import { createNavigation, type Navigation } from './navigate.ts'
import { createPage, type Page } from './page.ts'
import { openTabs, type Tabs, VIEWPORT } from './tabs.ts'

const PROXY_PORT = 3128
const LISTEN_RETRY_MS = 100
const STDERR_KEPT = 4_000
/** Shared memory goes here: the cell's /dev/shm is sized for code. */
const TEMPORARY = '/workspace/tmp'

export interface Chromium {
  readonly cell: Sandbox
  readonly tabs: Tabs
  readonly page: Page
  readonly input: Input
  readonly navigation: Navigation
  /** Resolves when it is over, with its last words on stderr. */
  readonly ended: Promise<{ readonly end: ExecEnd; readonly words: string }>
  /** Whether it still can be spoken to. */
  readonly alive: boolean
  kill(): Promise<void>
}

export interface ChromiumOptions {
  readonly cell: Sandbox
  /** Inside the cell. Chromium's own binary, no wrapper. */
  readonly executable: string
  /** The way out: what the browser wants to reach arrives here, as an HTTP proxy hears it. */
  readonly onConnection: (connection: Duplex) => void
  /** What the guard said of a host that it refused. */
  readonly refusalOf: (host: string) => string | undefined
}

/** Rejects with SandboxError, CdpError, or an Error with Chromium's last words. */
export async function openChromium(options: ChromiumOptions): Promise<Chromium> {
  const { cell, executable, onConnection, refusalOf } = options
  // A profile that another one left is not used: it may be locked, or half written.
  const profile = `/workspace/profile-${randomBytes(4).toString('hex')}`
  await Promise.all([
    cell.writeFile(`${TEMPORARY}/.made`, new Uint8Array(), 'write'),
    cell.writeFile(`${DOWNLOADS}/.made`, new Uint8Array(), 'write'),
    cell.writeFile(`${profile}/Default/Preferences`, Buffer.from(JSON.stringify(PREFERENCES)), 'write'),
  ])
  const listener = await listen(cell, onConnection)
  let words = ''
  const process = cell.spawn(
    {
      argv: [executable, ...FLAGS, `--user-data-dir=${profile}`, 'about:blank'],
      env: { TMPDIR: TEMPORARY },
      pipes: 'fd34',
    },
    (text) => {
      words = (words + text).slice(-STDERR_KEPT)
    },
  )
  let alive = true
  const ended = process.exited.then((end) => {
    alive = false
    return { end, words }
  })
  async function kill(): Promise<void> {
    process.kill()
    await listener.close()
    await ended
  }
  try {
    const tabs = await openTabs(process.stream, DOWNLOADS, MAX_DOWNLOAD_BYTES)
    const page = createPage(tabs)
    return {
      cell,
      tabs,
      page,
      input: createInput(tabs, page),
      navigation: createNavigation(tabs, page, refusalOf),
      ended,
      get alive() {
        return alive
      },
      kill,
    }
  } catch (error) {
    await kill()
    const last = words.trim().split('\n').at(-1) ?? ''
    throw last === '' ? error : new Error(`Chromium did not start: ${last}`, { cause: error })
  }
}

/** The listener of a worker that died goes with its connection: in a moment. */
async function listen(cell: Sandbox, onConnection: ChromiumOptions['onConnection'], tries = 50) {
  try {
    return await cell.listen(PROXY_PORT, onConnection)
  } catch (error) {
    if (!(error instanceof SandboxError && error.code === 'unavailable') || tries === 0) throw error
    await sleep(LISTEN_RETRY_MS)
    return listen(cell, onConnection, tries - 1)
  }
}

const PREFERENCES = { plugins: { always_open_pdf_externally: true }, credentials_enable_service: false }

const FEATURES_OFF = [
  'AutofillServerCommunication',
  'CertificateTransparencyComponentUpdater',
  'DialMediaRouteProvider',
  'InterestFeedContentSuggestions',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'SegmentationPlatform',
  'Translate',
]

const FLAGS: readonly string[] = [
  '--headless',
  '--remote-debugging-pipe',
  // The way out, for every address there is: loopback too is the proxy's to refuse.
  `--proxy-server=http://127.0.0.1:${PROXY_PORT}`,
  '--proxy-bypass-list=<-loopback>',
  '--disable-quic',
  '--dns-prefetch-disable',
  '--webrtc-ip-handling-policy=disable_non_proxied_udp',
  '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
  // Nothing of its own accord.
  '--disable-background-networking',
  '--disable-breakpad',
  '--disable-client-side-phishing-detection',
  '--disable-component-update',
  '--disable-crash-reporter',
  '--disable-default-apps',
  '--disable-domain-reliability',
  '--disable-extensions',
  `--disable-features=${FEATURES_OFF.join(',')}`,
  '--disable-search-engine-choice-screen',
  '--disable-sync',
  '--no-default-browser-check',
  '--no-first-run',
  '--no-pings',
  '--deny-permission-prompts',
  '--password-store=basic',
  // A site keeps to a process of its own.
  '--site-per-process',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--mute-audio',
  '--hide-scrollbars',
  '--font-render-hinting=none',
  '--lang=en-US',
  `--window-size=${VIEWPORT.width},${VIEWPORT.height}`,
  // What in-page.js asks roles and names of.
  '--enable-blink-features=ComputedAccessibilityInfo',
  '--log-level=2',
]
