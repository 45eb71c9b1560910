/** What a model is told after an action: what was done, where it is now, and of the page what is new. */
import { z } from 'zod'
import { cutEnd } from '../cut.ts'
import { CdpError } from './cdp.ts'
import type { Chromium } from './chromium.ts'
import type { Tab } from './tabs.ts'

/** Of a whole page, characters; less after an action that led to another page than where the page was asked for. */
const ROOM_ASKED = 40_000
const ROOM_LED = 12_000
const ROOM_CHANGED = 6_000

/** `page`: as it is; `change`: what is new since it was last shown; `nothing`: where it is alone. */
export type Show = 'page' | 'change' | 'nothing'

interface Shown {
  readonly url: string
  readonly lines: ReadonlySet<string>
}

const ABOUT = z.object({ status: z.number() })

export interface Reporter {
  /** `said` first; `maxBytes` of UTF-8 in all. */
  report(chromium: Chromium, said: readonly string[], show: Show, maxBytes: number): Promise<string>
}

export function createReporter(): Reporter {
  const shown = new WeakMap<Tab, Shown>()

  async function placeLine({ tabs, page }: Chromium, tab: Tab, url: string, title: string): Promise<string> {
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
    const most = Math.min(room, show === 'page' ? ROOM_ASKED : moved ? ROOM_LED : ROOM_ASKED)
    const { lines, cut } = await page.snapshot(tab, most)
    shown.set(tab, { url, lines: new Set(lines.map(bare)) })
    if (whole) {
      if (lines.length === 0) return ['The page is empty.']
      return [...lines, ...(cut ? [CUT] : [])]
    }
    const fresh = lines.filter((line) => !before.lines.has(bare(line)))
    if (fresh.length === 0) {
      const gone = before.lines.size - lines.length
      return [gone > 0 ? 'Something left the page, nothing new came.' : 'Nothing on the page changed visibly.']
    }
    const fitting = fitted(fresh, Math.min(room, ROOM_CHANGED))
    return [
      'New or changed on the page:',
      ...fitting,
      ...(fitting.length < fresh.length ? ['[… more changed: take a snapshot to see the whole page …]'] : []),
    ]
  }

  return {
    async report(chromium, said, show, maxBytes) {
      const { tabs, navigation } = chromium
      const tab = tabs.current
      const head = [...said, ...tabs.takeNews()]
      if (tab.crashed) return [...head, CRASHED].join('\n')
      const { url, title } = await navigation.place(tab)
      if (tab.dialog) {
        const { kind, message } = tab.dialog
        return [...head, `[${url}]`, `The page asks (${kind}): ${message}. ${ANSWER}`].join('\n')
      }
      head.push(await placeLine(chromium, tab, url, title))
      if (tab.stuck) head.push(`The page does not answer: ${BUSY}`)
      if (tab.stuck || show === 'nothing' || url === 'about:blank') return cutEnd(head.join('\n'), maxBytes)
      const room = Math.max(500, Math.floor(maxBytes * 0.7) - head.join('\n').length)
      const below = await content(chromium, tab, url, show, room).catch((error) => {
        if (!(error instanceof CdpError) || error.code === 'closed') throw error
        return [`The page could not be looked at: ${error.code === 'silent' ? BUSY : error.message}`]
      })
      return cutEnd([...head, ...below, ...tabs.takeNews()].join('\n'), maxBytes)
    },
  }
}

export const BUSY = 'a script of it may be running without end. Open another page.'
const CRASHED = 'The page crashed, perhaps for want of memory. Open a page anew; other tabs are not affected.'
const CUT = '[… the page goes on: only its beginning is shown. take a screenshot to see more …]'
const ANSWER =
  'Answer it with action "dialog": key "accept" (with `text` for a prompt) or "dismiss". Any other action dismisses it.'

/** Focus wanders with every action; it is no change that matters. */
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
