/** Actions on pages and tabs: opening, history, waiting, switching and closing tabs. */
import { z } from 'zod'
import type { Chromium } from '../chromium.ts'
import type { Tab } from '../tab.ts'
import { type ActionContext, type ActionResult, required, tabNamed } from './action.ts'

const MAX_WAIT_S = 60
const DEFAULT_WAIT_S = 2
const DEFAULT_TEXT_WAIT_S = 15
const TEXT_POLL_MS = 250

export async function open({ chromium, args }: ActionContext): Promise<ActionResult> {
  const url = required(args.url, 'url', 'the address to open')
  const tab = await usableTab(chromium)
  const message = await chromium.navigation.open(tab, url)
  return { message: message ?? 'Opened.', show: message === undefined ? 'page' : 'nothing' }
}

export async function snapshot(): Promise<ActionResult> {
  return { message: '', show: 'page' }
}

export async function back({ chromium: { navigation, tabs } }: ActionContext): Promise<ActionResult> {
  await navigation.go(tabs.current, -1)
  return { message: 'Went back.', show: 'page' }
}

export async function forward({ chromium: { navigation, tabs } }: ActionContext): Promise<ActionResult> {
  await navigation.go(tabs.current, 1)
  return { message: 'Went forward.', show: 'page' }
}

export async function reload({ chromium: { navigation, tabs } }: ActionContext): Promise<ActionResult> {
  await navigation.reload(tabs.current)
  return { message: 'Reloaded.', show: 'page' }
}

export async function wait({ chromium, args, context }: ActionContext): Promise<ActionResult> {
  const { text } = args
  const most = Math.min(args.seconds ?? (text === undefined ? DEFAULT_WAIT_S : DEFAULT_TEXT_WAIT_S), MAX_WAIT_S)
  const until = Date.now() + Math.min(most * 1_000, context.remainingMs())
  const found = await waitFor(chromium, text, until, context.signal)
  if (text === undefined) return { message: 'Waited.', show: 'change' }
  const quoted = JSON.stringify(text.slice(0, 200))
  return {
    message: found ? `${quoted} is on the page.` : `${quoted} did not appear within ${most} s.`,
    show: 'change',
  }
}

export async function tabs({ chromium, args }: ActionContext): Promise<ActionResult> {
  const { tabs, navigation } = chromium
  if (args.ref !== undefined) await tabs.show(tabNamed(chromium, args.ref))
  const lines = await Promise.all(
    tabs.all.map(async (tab) => {
      const { url, title } = await navigation.location(tab)
      return `${tab.name}${tab === tabs.current ? ' (current)' : ''}: ${url} ${JSON.stringify(title)}`
    }),
  )
  return { message: lines.join('\n'), show: args.ref === undefined ? 'nothing' : 'page' }
}

export async function close({ chromium, args }: ActionContext): Promise<ActionResult> {
  const tab = args.ref === undefined ? chromium.tabs.current : tabNamed(chromium, args.ref)
  await chromium.tabs.close(tab)
  return { message: `Closed ${tab.name}.`, show: 'nothing' }
}

/** The current tab, or a new one if that crashed or does not answer. */
async function usableTab({ tabs }: Chromium): Promise<Tab> {
  const tab = tabs.current
  if (!tab.crashed && !tab.unresponsive) return tab
  const replacement = await tabs.create()
  // Not awaited: closing it may take long, and a failure does not matter.
  tabs.close(tab).catch(() => {})
  return replacement
}

/** Whether the text appeared. Without a text, waits until the time is over. */
async function waitFor({ page, tabs }: Chromium, text: string | undefined, until: number, signal: AbortSignal) {
  for (;;) {
    const tab = tabs.current
    if (signal.aborted || tab.dialog || tab.crashed) return false
    if (text !== undefined && (await hasText(page, tab, text))) return true
    const left = until - Date.now()
    if (left <= 0) return false
    await tabs.until(() => signal.aborted || tab.dialog !== undefined || tab.crashed, Math.min(left, TEXT_POLL_MS))
  }
}

async function hasText(page: Chromium['page'], tab: Tab, text: string): Promise<boolean> {
  if (await page.call(page.main(tab), 'hasText', text, z.boolean()).catch(() => false)) return true
  if (tab.sessions.size === 0) return false
  const { lines } = await page.snapshot(tab, 40_000)
  return lines.some((line) => line.includes(text))
}
