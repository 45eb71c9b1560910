/** The result of an action as the model reads it: what was done, the current address, and what is new on the page. */
import { z } from 'zod'
import { truncateEnd } from '../truncate.ts'
import { CdpError } from './cdp.ts'
import type { Chromium } from './chromium.ts'
import type { Tab } from './tab.ts'

/** Maximum lengths in characters: of a page that was asked for, of one that an action led to, and of changes. */
const ROOM_REQUESTED = 40_000
const ROOM_LED_TO = 12_000
const ROOM_CHANGES = 6_000

/** `page`: the whole page. `change`: what is new since the page was last shown. `nothing`: the address only. */
export type Show = 'page' | 'change' | 'nothing'

interface ShownPage {
  readonly url: string
  readonly lines: ReadonlySet<string>
}

const ABOUT = z.object({ status: z.number() })

export interface Reporter {
  /** Begins with the messages. At most `maxBytes` of UTF-8. */
  report(chromium: Chromium, messages: readonly string[], show: Show, maxBytes: number): Promise<string>
}

export function createReporter(): Reporter {
  const shown = new WeakMap<Tab, ShownPage>()

  async function locationLine({ tabs, page }: Chromium, tab: Tab, url: string, title: string): Promise<string> {
    const parts = [url === 'about:blank' ? 'no page is open' : url]
    if (title !== '' && title !== url) parts.push(JSON.stringify(title))
    const status = await page.call(page.main(tab), 'about', null, ABOUT, 3_000).then(
      (about) => about.status,
      () => 0,
    )
    if (status >= 400) parts.push(`HTTP status ${status}`)
    if (tab.loading) parts.push('still loading')
    if (tabs.all.length > 1) parts.push(`tab ${tab.name} of ${tabs.all.map(({ name }) => name).join(', ')}`)
    return `[${parts.join(' · ')}]`
  }

  async function content({ page }: Chromium, tab: Tab, url: string, show: Show, room: number): Promise<string[]> {
    const before = shown.get(tab)
    const moved = before?.url !== url
    const whole = show === 'page' || moved
    const most = Math.min(room, show === 'page' ? ROOM_REQUESTED : moved ? ROOM_LED_TO : ROOM_REQUESTED)
    const { lines, truncated } = await page.snapshot(tab, most)
    shown.set(tab, { url, lines: new Set(lines.map(bare)) })
    if (whole) {
      if (lines.length === 0) return ['The page is empty.']
      return [...lines, ...(truncated ? [TRUNCATED] : [])]
    }
    const fresh = lines.filter((line) => !before.lines.has(bare(line)))
    if (fresh.length === 0) {
      const gone = before.lines.size - lines.length
      return [
        gone > 0 ? 'Something was removed from the page; nothing is new.' : 'Nothing visible changed on the page.',
      ]
    }
    const fitting = fitted(fresh, Math.min(room, ROOM_CHANGES))
    return [
      'New or changed on the page:',
      ...fitting,
      ...(fitting.length < fresh.length ? ['[… more changed: take a snapshot to see the whole page …]'] : []),
    ]
  }

  return {
    async report(chromium, messages, show, maxBytes) {
      const { tabs, navigation } = chromium
      const tab = tabs.current
      const head = [...messages, ...tabs.notices.take()]
      if (tab.crashed) return [...head, CRASHED].join('\n')
      const { url, title } = await navigation.location(tab)
      if (tab.dialog) {
        const { kind, message } = tab.dialog
        return [...head, `[${url}]`, `The page asks (${kind}): ${message}. ${ANSWER}`].join('\n')
      }
      head.push(await locationLine(chromium, tab, url, title))
      if (tab.unresponsive) head.push(`The page does not answer: ${BUSY}`)
      if (tab.unresponsive || show === 'nothing' || url === 'about:blank') return truncateEnd(head.join('\n'), maxBytes)
      const room = Math.max(500, Math.floor(maxBytes * 0.7) - head.join('\n').length)
      const below = await content(chromium, tab, url, show, room).catch((error) => {
        if (!(error instanceof CdpError) || error.code === 'closed') throw error
        return [`The page could not be read: ${error.code === 'timeout' ? BUSY : error.message}`]
      })
      return truncateEnd([...head, ...below, ...tabs.notices.take()].join('\n'), maxBytes)
    },
  }
}

export const BUSY = 'one of its scripts may be in an endless loop. Open another page.'
const CRASHED =
  'The page crashed, possibly because it ran out of memory. Open a page again; other tabs are not affected.'
const TRUNCATED = '[… the page is longer; only its beginning is shown. Take a screenshot to see more …]'
const ANSWER =
  'Answer it with action "dialog": key "accept" (with `text` for a prompt) or "dismiss". Any other action dismisses it.'

/** A line without its focus state. The focus moves with every action, which is not a change that matters. */
function bare(line: string): string {
  return line.replace(' [focused]', '')
}

function fitted(lines: readonly string[], room: number): string[] {
  let left = room
  return lines.filter((line) => {
    left -= line.length + 1
    return left >= 0
  })
}
