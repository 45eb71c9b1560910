/** The actions of the `browser` tool, one function each. What a model can act on is thrown as Refusal. */
import { z } from 'zod'
import type { ToolContext, ToolOutcome } from '../port.ts'
import type { Chromium } from './chromium.ts'
import { bring, type Clip, capture, print } from './files.ts'
import { gone, Refusal, type Target } from './input.ts'
import { KEY_NAMES } from './keys.ts'
import type { Show } from './report.ts'
import type { Tab } from './tabs.ts'

export interface Arguments {
  readonly url?: string | undefined
  readonly ref?: string | undefined
  readonly text?: string | undefined
  readonly key?: string | undefined
  readonly path?: string | undefined
  readonly seconds?: number | undefined
}

export interface Scene {
  readonly chromium: Chromium
  readonly args: Arguments
  readonly context: ToolContext
  /** Counts from 1 over the run, for names of files. */
  readonly count: (what: string) => number
}

export interface Done {
  /** A sentence. */
  readonly said: string
  readonly show: Show
  readonly media?: ToolOutcome['media']
  /** Where the download that this action was about belongs. */
  readonly downloadTo?: string | undefined
}

export type Action = (scene: Scene) => Promise<Done>

const MAX_WAIT_S = 60
const DEFAULT_WAIT_S = 2
const LOOK_MS = 250
const ACT_MS = 60_000
const DOWNLOAD_BEGINS_MS = 15_000
const MAX_IMAGE_BYTES = 5 * 1024 * 1024

const SCROLLED = z.object({ at: z.number(), end: z.number() })
const SIZE = z.object({ width: z.number(), height: z.number() })
const ABOUT = z.object({ scrolled: z.object({ x: z.number(), y: z.number() }) })

export const ACTIONS = {
  async open({ chromium, args }) {
    const url = needed(args.url, 'url', 'the address to open')
    const tab = await usable(chromium)
    const told = await chromium.navigation.open(tab, url)
    return { said: told ?? 'Opened.', show: told === undefined ? 'page' : 'nothing' }
  },
  async snapshot() {
    return { said: '', show: 'page' }
  },
  async click({ chromium, args }) {
    await acting(chromium, (input) => input.click(target(chromium, args), args.key === 'double'))
    return { said: `Clicked [${args.ref}].`, show: 'change' }
  },
  async hover({ chromium, args }) {
    await acting(chromium, (input) => input.hover(target(chromium, args)))
    return { said: `The mouse is over [${args.ref}].`, show: 'change' }
  },
  async type({ chromium, args }) {
    const text = needed(args.text, 'text', 'what to type; empty to clear the field', true)
    const { frame, ref } = target(chromium, args)
    await acting(chromium, async (input) => {
      await input.type({ frame, ref }, text)
      if (args.key !== undefined) await input.press(frame.tab, args.key)
    })
    const pressed = args.key === undefined ? '' : ` and pressed ${args.key}`
    return { said: `${text === '' ? 'Cleared' : 'Typed into'} [${args.ref}]${pressed}.`, show: 'change' }
  },
  async press({ chromium, args }) {
    const key = needed(args.key, 'key', `a key such as ${KEY_NAMES}`)
    await acting(chromium, (input) => input.press(chromium.tabs.current, key))
    return { said: `Pressed ${key}.`, show: 'change' }
  },
  async select({ chromium, args }) {
    const text = needed(args.text, 'text', 'the label of the option; several, a line each, where the list allows it')
    let chosen: readonly string[] = []
    await acting(chromium, async (input) => {
      chosen = await input.select(target(chromium, args), text)
    })
    return {
      said: `Selected ${chosen.map((label) => JSON.stringify(label)).join(', ')} in [${args.ref}].`,
      show: 'change',
    }
  },
  async scroll({ chromium, args }) {
    const { page, tabs } = chromium
    if (args.ref !== undefined) {
      const { frame, ref } = target(chromium, args)
      await chromium.input.boxOf({ frame, ref })
      return { said: `[${args.ref}] is in view.`, show: 'nothing' }
    }
    const where = args.text ?? 'down'
    if (!['down', 'up', 'top', 'bottom'].includes(where)) throw new Refusal('`text` must be down, up, top or bottom.')
    const { at, end } = await page.call(page.main(tabs.current), 'scroll', where, SCROLLED)
    await chromium.navigation.settle(tabs.current)
    return { said: `Scrolled: at ${at} of ${end} pixels.`, show: 'change' }
  },
  back: ({ chromium }) => history(chromium, -1),
  forward: ({ chromium }) => history(chromium, 1),
  async reload({ chromium }) {
    await chromium.navigation.reload(chromium.tabs.current)
    return { said: 'Loaded anew.', show: 'page' }
  },
  async wait({ chromium, args, context }) {
    const most = Math.min(args.seconds ?? (args.text === undefined ? DEFAULT_WAIT_S : 15), MAX_WAIT_S)
    const until = Date.now() + Math.min(most * 1_000, context.remainingMs())
    const found = await waitFor(chromium, args.text, until, context.signal)
    if (args.text === undefined) return { said: 'Waited.', show: 'change' }
    const what = JSON.stringify(args.text.slice(0, 200))
    return { said: found ? `${what} is on the page.` : `${what} did not come within ${most} s.`, show: 'change' }
  },
  async tabs({ chromium, args }) {
    const { tabs, navigation } = chromium
    if (args.ref !== undefined) await tabs.show(tabNamed(chromium, args.ref))
    const lines = await Promise.all(
      tabs.all.map(async (tab) => {
        const { url, title } = await navigation.place(tab)
        return `${tab.name}${tab === tabs.current ? ' (current)' : ''}: ${url} ${JSON.stringify(title)}`
      }),
    )
    return { said: lines.join('\n'), show: args.ref === undefined ? 'nothing' : 'page' }
  },
  async close({ chromium, args }) {
    const { tabs } = chromium
    const tab = args.ref === undefined ? tabs.current : tabNamed(chromium, args.ref)
    await tabs.close(tab)
    return { said: `Closed ${tab.name}.`, show: 'nothing' }
  },
  async screenshot(scene) {
    const { chromium, args, context, count } = scene
    const path = args.path ?? `outputs/screenshot-${count('screenshot')}.png`
    if (!/\.png$/i.test(path)) throw new Refusal('`path` must end in .png.')
    const bytes = await capture(chromium.tabs.cdp, chromium.tabs.current, await clipOf(scene))
    await (await context.sandbox()).writeFile(path, bytes, 'write')
    const shows = context.vision && bytes.length <= MAX_IMAGE_BYTES
    const seen = shows
      ? 'it is shown here'
      : context.vision
        ? 'too large to be shown'
        : 'this model can’t be shown images'
    return {
      said: `The screenshot is \`${path}\` (${bytes.length} bytes); ${seen}.`,
      show: 'nothing',
      ...(shows && { media: [{ type: 'image', mimeType: 'image/png', base64: bytes.toString('base64') }] as const }),
    }
  },
  async pdf({ chromium, args, context, count }) {
    const path = args.path ?? `outputs/page-${count('pdf')}.pdf`
    if (!/\.pdf$/i.test(path)) throw new Refusal('`path` must end in .pdf.')
    const sandbox = await context.sandbox()
    await sandbox.writeFile(path, print(chromium.tabs.cdp, chromium.tabs.current), 'write')
    return { said: `The page is printed to \`${path}\`.`, show: 'nothing' }
  },
  async download({ chromium, args, context }) {
    const { tabs, navigation } = chromium
    const { downloads } = tabs
    const begun = downloads.begun
    if (args.url !== undefined) await forced(chromium, () => navigation.open(tabs.current, args.url!))
    else await forced(chromium, () => chromium.input.click(target(chromium, args), false))
    if (!(await tabs.until(() => downloads.begun > begun || tabs.current.dialog !== undefined, DOWNLOAD_BEGINS_MS))) {
      throw new Refusal('No download began: that leads to no file.')
    }
    await tabs.until(() => downloads.active === 0, Math.max(0, context.remainingMs() - 2_000))
    return { said: '', show: 'nothing', downloadTo: args.path }
  },
  async upload({ chromium, args, context }) {
    const path = needed(args.path, 'path', 'the file of the working directory to upload')
    const { frame, ref } = target(chromium, args)
    const place = await bring(chromium.cell, await context.sandbox(), path)
    await attach(chromium, { frame, ref }, place)
    return { said: `\`${path}\` is chosen in [${args.ref}].`, show: 'change' }
  },
  async dialog({ chromium, args }) {
    const { tabs, navigation } = chromium
    const tab = tabs.current
    if (!tab.dialog) throw new Refusal('No dialog is open.')
    const accept = args.key !== 'dismiss'
    if (args.key !== undefined && !['accept', 'dismiss'].includes(args.key)) {
      throw new Refusal('`key` must be accept or dismiss.')
    }
    await tabs.answer(tab, accept, args.text)
    await navigation.settle(tab)
    return { said: `The dialog was ${accept ? 'accepted' : 'dismissed'}.`, show: 'change' }
  },
} satisfies Record<string, Action>

export type ActionName = keyof typeof ACTIONS

function needed(value: string | undefined, name: string, what: string, mayBeEmpty = false): string {
  if (value === undefined || (value === '' && !mayBeEmpty)) throw new Refusal(`\`${name}\` is missing: ${what}.`)
  return value
}

function target({ page, tabs }: Chromium, { ref }: Arguments): Target {
  const number = Number(
    /^\[?e?(\d{1,9})\]?$/.exec(needed(ref, 'ref', 'the reference of an element, such as e12').trim())?.[1],
  )
  if (!Number.isInteger(number))
    throw new Refusal(`\`ref\` must be a reference from the page, such as e12, got ${JSON.stringify(ref)}.`)
  const frame = page.frameOf(number)
  if (!frame || !tabs.all.includes(frame.tab)) throw new Refusal(gone(number))
  if (frame.tab !== tabs.current)
    throw new Refusal(`[e${number}] is in tab ${frame.tab.name}, which is not the current one.`)
  return { ref: number, frame }
}

function tabNamed({ tabs }: Chromium, name: string): Tab {
  const found = tabs.all.find((tab) => tab.name === name.trim().replace(/^\[|\]$/g, ''))
  if (!found)
    throw new Refusal(
      `There is no tab ${JSON.stringify(name)}; there are ${tabs.all.map((tab) => tab.name).join(', ')}.`,
    )
  return found
}

/** A tab that can be navigated: one that crashed or does not answer is replaced. */
async function usable({ tabs }: Chromium): Promise<Tab> {
  const tab = tabs.current
  if (!tab.crashed && !tab.stuck) return tab
  const fresh = await tabs.create()
  // It may take its time; what it says of itself is no news.
  tabs.close(tab).catch(() => {})
  return fresh
}

/** Does something to the page and waits until it has settled. A dialog that opens meanwhile holds the page up: then nothing more is waited for. */
async function acting({ tabs, input, navigation }: Chromium, act: (input: Chromium['input']) => Promise<unknown>) {
  const tab = tabs.current
  const acted = act(input)
  await tabs.until(() => tab.dialog !== undefined || tab.crashed, ACT_MS, acted)
  if (!tabs.all.includes(tab) || tab.dialog || tab.crashed) return
  await acted
  await navigation.settle(tabs.current)
}

async function history({ navigation, tabs }: Chromium, steps: number): Promise<Done> {
  const told = await navigation.go(tabs.current, steps)
  if (told !== undefined) throw new Refusal(told)
  return { said: `Went ${steps < 0 ? 'back' : 'forward'}.`, show: 'page' }
}

async function waitFor({ page, tabs }: Chromium, text: string | undefined, until: number, signal: AbortSignal) {
  for (;;) {
    const tab = tabs.current
    if (signal.aborted || tab.dialog || tab.crashed) return false
    if (text !== undefined && (await hasText(page, tab, text))) return true
    const left = until - Date.now()
    if (left <= 0) return false
    await tabs.until(() => signal.aborted || tab.dialog !== undefined || tab.crashed, Math.min(left, LOOK_MS))
  }
}

async function hasText(page: Chromium['page'], tab: Tab, text: string): Promise<boolean> {
  if (await page.call(page.main(tab), 'hasText', text, z.boolean()).catch(() => false)) return true
  if (tab.sessions.size === 0) return false
  const { lines } = await page.snapshot(tab, 40_000)
  return lines.some((line) => line.includes(text))
}

async function clipOf({ chromium, args }: Scene): Promise<Clip | undefined> {
  const { page, tabs, input } = chromium
  const main = page.main(tabs.current)
  if (args.ref !== undefined) {
    const box = await input.boxOf(target(chromium, args))
    const { scrolled } = await page.call(main, 'about', null, ABOUT)
    return { ...box, x: box.x + scrolled.x, y: box.y + scrolled.y }
  }
  if (args.text === undefined) return undefined
  if (args.text !== 'full') throw new Refusal('`text` must be "full", for the whole page, or left out.')
  return { x: 0, y: 0, ...(await page.call(main, 'size', null, SIZE)) }
}

const PAUSED = { patterns: [{ urlPattern: '*', resourceType: 'Document', requestStage: 'Response' }] }

/** Whatever comes as a document meanwhile is saved, not shown. */
async function forced({ tabs }: Chromium, act: () => Promise<unknown>): Promise<void> {
  const { session } = tabs.current
  await tabs.cdp.call('Fetch.enable', { session, params: PAUSED })
  try {
    await act()
  } finally {
    await tabs.cdp.call('Fetch.disable', { session }).catch(() => {})
  }
}

/** Into the file input itself, or by the chooser that a click on the element opens. */
async function attach(
  { tabs, page, input, navigation }: Chromium,
  { frame, ref }: Target,
  place: string,
): Promise<void> {
  const { tab, session } = frame
  const isInput = await page.call(frame, 'takesFiles', ref, z.boolean())
  if (isInput) {
    const objectId = await page.objectOf(frame, ref)
    await tabs.cdp.call('DOM.setFileInputFiles', { session, params: { files: [place], objectId } })
    return navigation.settle(tab)
  }
  tab.chooser = undefined
  await tabs.cdp.call('Page.setInterceptFileChooserDialog', { session, params: { enabled: true } })
  try {
    await input.click({ frame, ref }, false)
    await tabs.until(() => tab.chooser !== undefined, 3_000)
    const { chooser } = tab as Tab
    if (!chooser) throw new Refusal(`[e${ref}] takes no file, and clicking it asks for none.`)
    const params = { files: [place], backendNodeId: chooser.node }
    await tabs.cdp.call('DOM.setFileInputFiles', { session: chooser.session, params })
  } finally {
    await tabs.cdp.call('Page.setInterceptFileChooserDialog', { session, params: { enabled: false } }).catch(() => {})
  }
  await navigation.settle(tab)
}
