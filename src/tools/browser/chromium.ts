/**
 * One Chromium in a sandbox of its own, controlled over a pipe. Its only network connection is the egress guard's proxy,
 * which listens on the loopback interface of that sandbox. Chromium's own sandbox is on (never `--no-sandbox`); a page that
 * escapes from it is still in the browser's sandbox, which has no network, no files of the run and no secrets.
 */
import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ExecEnd, type Sandbox, SandboxError } from '../../sandbox/port.ts'
import { DOWNLOADS, MAX_DOWNLOAD_BYTES } from './files.ts'
import { createInput, type Input } from './input.ts'
import { createNavigation, type Navigation } from './navigation.ts'
import { createPage, type Page } from './page.ts'
import { VIEWPORT } from './tab.ts'
import { openTabs, type Tabs } from './tabs.ts'

const PROXY_PORT = 3128
const LISTEN_RETRY_MS = 100
const STDERR_KEPT = 4_000
/** Shared memory is placed here, because the sandbox's /dev/shm is too small for a browser. */
const TEMPORARY = '/workspace/tmp'

export interface Chromium {
  readonly cell: Sandbox
  readonly tabs: Tabs
  readonly page: Page
  readonly input: Input
  readonly navigation: Navigation
  /** Resolves when Chromium has exited, with the end of its stderr. */
  readonly ended: Promise<{ readonly end: ExecEnd; readonly stderr: string }>
  /** Chromium has not exited. */
  readonly alive: boolean
  kill(): Promise<void>
}

export interface ChromiumOptions {
  readonly cell: Sandbox
  /** A path in the sandbox: Chromium's own binary, not a wrapper script. */
  readonly executable: string
  /** Gets the browser's connections to its HTTP proxy. */
  readonly onConnection: (connection: Duplex) => void
  /** Why the egress guard refused a host; undefined if it did not. */
  readonly refusalOf: (host: string) => string | undefined
}

/** Rejects with SandboxError, CdpError, or an Error with the last line of Chromium's stderr. */
export async function openChromium(options: ChromiumOptions): Promise<Chromium> {
  const { cell, executable, onConnection, refusalOf } = options
  // A new profile: that of an earlier Chromium may be locked or incomplete.
  const profile = `/workspace/profile-${randomBytes(4).toString('hex')}`
  await Promise.all([
    cell.writeFile(`${TEMPORARY}/.made`, new Uint8Array(), 'write'),
    cell.writeFile(`${DOWNLOADS}/.made`, new Uint8Array(), 'write'),
    cell.writeFile(`${profile}/Default/Preferences`, Buffer.from(JSON.stringify(PREFERENCES)), 'write'),
  ])
  const listener = await listen(cell, onConnection)
  let stderr = ''
  const process = cell.spawn(
    {
      argv: [executable, ...FLAGS, `--user-data-dir=${profile}`, 'about:blank'],
      env: { TMPDIR: TEMPORARY },
      pipes: 'fd34',
    },
    (text) => {
      stderr = (stderr + text).slice(-STDERR_KEPT)
    },
  )
  let alive = true
  const ended = process.exited.then((end) => {
    alive = false
    return { end, stderr }
  })
  async function kill(): Promise<void> {
    process.kill()
    await listener.close()
    await ended
  }
  try {
    const tabs = await openTabs(process.stream, DOWNLOADS, MAX_DOWNLOAD_BYTES)
    const page = createPage(tabs.cdp)
    return {
      cell,
      tabs,
      page,
      input: createInput(tabs.cdp, page),
      navigation: createNavigation(tabs, page, refusalOf),
      ended,
      get alive() {
        return alive
      },
      kill,
    }
  } catch (error) {
    await kill()
    const last = stderr.trim().split('\n').at(-1) ?? ''
    throw last === '' ? error : new Error(`Chromium did not start: ${last}`, { cause: error })
  }
}

/** Retries while the port is taken by the listener of a dead worker, which goes away with the worker's connection. */
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
  // Every address goes through the proxy, loopback included.
  `--proxy-server=http://127.0.0.1:${PROXY_PORT}`,
  '--proxy-bypass-list=<-loopback>',
  '--disable-quic',
  '--dns-prefetch-disable',
  '--webrtc-ip-handling-policy=disable_non_proxied_udp',
  '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
  // No requests of the browser's own.
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
  // Each site in a process of its own.
  '--site-per-process',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--mute-audio',
  '--hide-scrollbars',
  '--font-render-hinting=none',
  '--lang=en-US',
  `--window-size=${VIEWPORT.width},${VIEWPORT.height}`,
  // For `computedRole` and `computedName` in in-page/elements.js.
  '--enable-blink-features=ComputedAccessibilityInfo',
  '--log-level=2',
]
