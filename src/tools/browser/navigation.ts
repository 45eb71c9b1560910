/** Navigation: opening addresses, history, and waiting until a page has loaded. A Refusal's message is for the model. */
import { z } from 'zod'
import { CdpError } from './cdp.ts'
import { Refusal } from './input.ts'
import { explainLoadError } from './load-errors.ts'
import type { Page } from './page.ts'
import type { Tab } from './tab.ts'
import type { Tabs } from './tabs.ts'

const NAVIGATE_MS = 45_000
/** A page that is still loading after this time is shown as far as it is. */
const LOAD_MS = 10_000
/** Time in which Chromium reports a navigation that became a download. */
const DOWNLOAD_MS = 5_000
/** Time in which an action shows whether it loads another page. */
const LOADING_BEGINS_MS = 80
const QUIET_MS = 120
const MAX_QUIET_WAIT_MS = 1_500

export interface Navigation {
  /** Returns a message for the model if the address is a download. Throws Refusal. */
  open(tab: Tab, url: string): Promise<string | undefined>
  /** Goes back (-1) or forward (1). Throws Refusal if there is no such page. */
  go(tab: Tab, steps: number): Promise<void>
  reload(tab: Tab): Promise<void>
  /** Waits, within limits, until the page has loaded and stopped changing, or a dialog blocks it. */
  settle(tab: Tab): Promise<void>
  /** The tab's address and title. */
  location(tab: Tab): Promise<{ url: string; title: string }>
}

const NAVIGATED = z.object({ errorText: z.string().optional(), isDownload: z.boolean().optional() })
const HISTORY = z.object({
  currentIndex: z.int(),
  entries: z.array(z.object({ id: z.int(), url: z.string(), title: z.string() })),
})
type History = z.output<typeof HISTORY>

/** `refusalOf`: why the egress guard refused a host; undefined if it did not. */
export function createNavigation(
  { cdp, downloads, until }: Tabs,
  page: Page,
  refusalOf: (host: string) => string | undefined,
): Navigation {
  const isBlocked = (tab: Tab) => tab.dialog !== undefined || tab.crashed

  async function settle(tab: Tab): Promise<void> {
    await until(() => tab.loading || isBlocked(tab), LOADING_BEGINS_MS)
    const loaded = await until(() => !tab.loading || isBlocked(tab), LOAD_MS)
    if (!loaded || isBlocked(tab)) return
    const limits = { quiet: QUIET_MS, most: MAX_QUIET_WAIT_MS }
    const quiet = page.call(page.main(tab), 'settled', limits, z.unknown(), 2 * MAX_QUIET_WAIT_MS)
    await until(() => isBlocked(tab), 2 * MAX_QUIET_WAIT_MS, quiet)
    // Any error but a closed browser means that the page is busy or is being replaced: then there is nothing to wait for.
    if (!isBlocked(tab)) await quiet.catch(ignoreUnlessClosed)
  }

  /** Retries, because Chromium refuses the call for a moment while one page replaces another. */
  async function history(tab: Tab, tries = 10): Promise<History> {
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
        if (!(error instanceof CdpError) || error.code !== 'timeout') throw error
        throw new Refusal(`${target.host} did not answer within ${NAVIGATE_MS / 1000} s.`)
      })
      if (answered.isDownload) await until(() => downloads.begun > begun, DOWNLOAD_MS)
      if (answered.isDownload || downloads.begun > begun) return `${target.href} is a file to download, not a page.`
      if (answered.errorText !== undefined) {
        const reason = refusalOf(target.hostname) ?? explainLoadError(answered.errorText, target.hostname)
        throw new Refusal(`${target.href.slice(0, 500)} can't be opened: ${reason}`)
      }
      await settle(tab)
      return undefined
    },
    async go(tab, steps) {
      const { currentIndex, entries } = await history(tab)
      const entry = entries[currentIndex + steps]
      if (!entry || entry.url === 'about:blank')
        throw new Refusal(`There is no page to go ${steps < 0 ? 'back' : 'forward'} to.`)
      await cdp.call('Page.navigateToHistoryEntry', { session: tab.session, params: { entryId: entry.id } })
      await settleAfterReload(tab)
    },
    async reload(tab) {
      await cdp.call('Page.reload', { session: tab.session })
      await settleAfterReload(tab)
    },
    async location(tab) {
      const { currentIndex, entries } = await history(tab).catch((error) => {
        ignoreUnlessClosed(error)
        return BETWEEN_PAGES
      })
      const { url = 'about:blank', title = '' } = entries[currentIndex] ?? {}
      return { url: url.slice(0, 1_000), title: title.replace(/\s+/g, ' ').slice(0, 300) }
    },
  }

  async function settleAfterReload(tab: Tab): Promise<void> {
    await until(() => tab.loading || isBlocked(tab), 500)
    await settle(tab)
  }
}

const BETWEEN_PAGES: History = { currentIndex: 0, entries: [{ id: 0, url: 'between two pages', title: '' }] }

function ignoreUnlessClosed(error: unknown): void {
  if (!(error instanceof CdpError) || error.code === 'closed') throw error
}

/** Throws Refusal unless the address is http or https, without credentials. The default scheme is https. */
function addressOf(text: string): URL {
  const trimmed = text.trim()
  const scheme = /^([a-z][a-z0-9+.-]*):(?!\d)/i.exec(trimmed)?.[1]?.toLowerCase()
  if (scheme !== undefined && scheme !== 'http' && scheme !== 'https') {
    throw new Refusal(`${scheme}: addresses are not opened. Give one that begins with https:// or http://.`)
  }
  const whole = scheme === undefined ? `https://${trimmed.replace(/^\/\//, '')}` : trimmed
  if (!URL.canParse(whole)) throw new Refusal(`${JSON.stringify(trimmed.slice(0, 200))} is not a web address.`)
  const url = new URL(whole)
  if (url.username !== '' || url.password !== '') {
    throw new Refusal(
      'Addresses that contain a user name or password are not opened. Leave it out, and sign in on the page.',
    )
  }
  return url
}
