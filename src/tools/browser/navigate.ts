/** Going somewhere: addresses, history, waiting until a page is there. Failures are sentences for the model. */
import { z } from 'zod'
import { CdpError } from './cdp.ts'
import { Refusal } from './input.ts'
import type { Page } from './page.ts'
import type { Tab, Tabs } from './tabs.ts'

const NAVIGATE_MS = 45_000
/** A page that goes on loading after that is shown as far as it is. */
const LOAD_MS = 10_000
/** In which a navigation that became a download is told as one. */
const DOWNLOAD_MS = 5_000
/** In which a click shows whether it leads to another page. */
const BEGIN_MS = 80
const QUIET_MS = 120
const MOST_MS = 1_500

export interface Navigation {
  /** Resolves with what is to be said of it; undefined where it went well. Throws Refusal. */
  open(tab: Tab, url: string): Promise<string | undefined>
  /** -1 back, 1 forward. */
  go(tab: Tab, steps: number): Promise<string | undefined>
  reload(tab: Tab): Promise<void>
  /** Until the page has loaded and stopped to change, or a dialog holds it up; bounded. */
  settle(tab: Tab): Promise<void>
  /** Where the tab is. */
  place(tab: Tab): Promise<{ url: string; title: string }>
}

const NAVIGATED = z.object({ errorText: z.string().optional(), isDownload: z.boolean().optional() })
const HISTORY = z.object({
  currentIndex: z.int(),
  entries: z.array(z.object({ id: z.int(), url: z.string(), title: z.string() })),
})

/** `refusalOf`: what the guard said of a host, where it refused it. */
export function createNavigation(
  { cdp, downloads, until }: Tabs,
  page: Page,
  refusalOf: (host: string) => string | undefined,
): Navigation {
  const held = (tab: Tab) => tab.dialog !== undefined || tab.crashed

  async function settle(tab: Tab): Promise<void> {
    await until(() => tab.loading || held(tab), BEGIN_MS)
    const loaded = await until(() => !tab.loading || held(tab), LOAD_MS)
    if (!loaded || held(tab)) return
    const quiet = page.call(page.main(tab), 'settled', { quiet: QUIET_MS, most: MOST_MS }, z.unknown(), 2 * MOST_MS)
    await until(() => held(tab), 2 * MOST_MS, quiet)
    // A page that is being replaced, or is busy, is as settled as it will get.
    if (!held(tab)) await quiet.catch(ignoreUnlessClosed)
  }

  /** Refused for a moment while one page takes the place of another. */
  async function history(tab: Tab, tries = 10): Promise<z.output<typeof HISTORY>> {
    try {
      return await cdp.call('Page.getNavigationHistory', { session: tab.session, answer: HISTORY })
    } catch (error) {
      if (!(error instanceof CdpError) || error.code !== 'refused' || tries === 0) throw error
      await until(() => false, 50)
      return history(tab, tries - 1)
    }
  }

  return {
    settle,
    async open(tab, url) {
      const target = addressOf(url)
      const begun = downloads.begun
      const params = { url: target.href }
      const options = { session: tab.session, params, answer: NAVIGATED, timeoutMs: NAVIGATE_MS }
      const answered = await cdp.call('Page.navigate', options).catch((error) => {
        if (!(error instanceof CdpError) || error.code !== 'silent') throw error
        throw new Refusal(`${target.host} did not answer within ${NAVIGATE_MS / 1000} s.`)
      })
      if (answered.isDownload) await until(() => downloads.begun > begun, DOWNLOAD_MS)
      if (answered.isDownload || downloads.begun > begun) return `${target.href} is a file to download, no page.`
      if (answered.errorText !== undefined) {
        throw new Refusal(
          `${target.href.slice(0, 500)} can't be opened: ${explain(answered.errorText, target, refusalOf(target.hostname))}`,
        )
      }
      await settle(tab)
      return undefined
    },
    async go(tab, steps) {
      const { currentIndex, entries } = await history(tab)
      const entry = entries[currentIndex + steps]
      if (!entry || entry.url === 'about:blank') return `There is no page to go ${steps < 0 ? 'back' : 'forward'} to.`
      await cdp.call('Page.navigateToHistoryEntry', { session: tab.session, params: { entryId: entry.id } })
      await until(() => tab.loading || held(tab), 500)
      await settle(tab)
      return undefined
    },
    async reload(tab) {
      await cdp.call('Page.reload', { session: tab.session })
      await until(() => tab.loading || held(tab), 500)
      await settle(tab)
    },
    async place(tab) {
      const { currentIndex, entries } = await history(tab).catch((error) => {
        ignoreUnlessClosed(error)
        return BETWEEN
      })
      const { url = 'about:blank', title = '' } = entries[currentIndex] ?? {}
      return { url: url.slice(0, 1_000), title: title.replace(/\s+/g, ' ').slice(0, 300) }
    },
  }
}

function ignoreUnlessClosed(error: unknown): void {
  if (!(error instanceof CdpError) || error.code === 'closed') throw error
}

/** Throws Refusal: the web alone, nothing of the browser's own. */
function addressOf(text: string): URL {
  const trimmed = text.trim()
  const scheme = /^([a-z][a-z0-9+.-]*):(?!\d)/i.exec(trimmed)?.[1]?.toLowerCase()
  if (scheme !== undefined && scheme !== 'http' && scheme !== 'https') {
    throw new Refusal(`${scheme}: addresses are not opened: give one that begins with https:// or http://.`)
  }
  const whole = scheme === undefined ? `https://${trimmed.replace(/^\/\//, '')}` : trimmed
  if (!URL.canParse(whole)) throw new Refusal(`${JSON.stringify(trimmed.slice(0, 200))} is not a web address.`)
  const url = new URL(whole)
  if (url.username !== '' || url.password !== '') {
    throw new Refusal(
      'An address with a user name or password in it is not opened: give it without, and log in on the page.',
    )
  }
  return url
}

const BETWEEN = { currentIndex: 0, entries: [{ id: 0, url: 'between two pages', title: '' }] }

const WORDS: Readonly<Record<string, string>> = {
  ERR_NAME_NOT_RESOLVED: 'there is no host of that name',
  ERR_CONNECTION_REFUSED: 'the host refused the connection',
  ERR_CONNECTION_RESET: 'the connection broke off',
  ERR_CONNECTION_CLOSED: 'the connection broke off',
  ERR_EMPTY_RESPONSE: 'the host closed the connection without an answer',
  ERR_TUNNEL_CONNECTION_FAILED: 'the host can’t be reached',
  ERR_PROXY_CONNECTION_FAILED: 'there is no way out to the network',
  ERR_TIMED_OUT: 'the host did not answer in time',
  ERR_CONNECTION_TIMED_OUT: 'the host did not answer in time',
  ERR_TOO_MANY_REDIRECTS: 'it redirects in a circle',
  ERR_SSL_PROTOCOL_ERROR: 'the host does not speak TLS properly',
  ERR_HTTP_RESPONSE_CODE_FAILURE: 'the host answered with an error and no page',
  ERR_BLOCKED_BY_RESPONSE: 'the host does not allow it to be shown',
  ERR_UNSAFE_PORT: 'its port is closed to browsers',
  ERR_UNSAFE_REDIRECT: 'it redirects to an address that is not of the web',
  ERR_ABORTED: 'the host answered without a page, or loading was broken off',
}

function explain(errorText: string, { hostname }: URL, refusal: string | undefined): string {
  const code = /^net::(ERR_[A-Z_]+)$/.exec(errorText)?.[1]
  if (refusal !== undefined) return refusal
  if (code?.startsWith('ERR_CERT_')) return `the certificate of ${hostname} can’t be trusted (${code}).`
  return `${WORDS[code ?? ''] ?? 'it failed'}${code ? ` (${code})` : ''}.`
}
