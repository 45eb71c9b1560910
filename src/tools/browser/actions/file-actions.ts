/** Actions that make files or need one: screenshot, PDF, download, upload. */
import { z } from 'zod'
import type { ToolContext } from '../../port.ts'
import type { Chromium } from '../chromium.ts'
import { type Clip, captureScreenshot, copyIntoBrowser, printToPdf } from '../files.ts'
import { Refusal, type Target } from '../input.ts'
import type { Tab } from '../tab.ts'
import { type ActionContext, type ActionResult, required, targetOf } from './action.ts'

const DOWNLOAD_BEGINS_MS = 15_000
const CHOOSER_OPENS_MS = 3_000
const MAX_IMAGE_BYTES = 5 * 1024 * 1024

const SIZE = z.object({ width: z.number(), height: z.number() })
const ABOUT = z.object({ scrolled: z.object({ x: z.number(), y: z.number() }) })

export async function screenshot(action: ActionContext): Promise<ActionResult> {
  const { chromium, args, context, count } = action
  const path = args.path ?? `outputs/screenshot-${count('screenshot')}.png`
  if (!/\.png$/i.test(path)) throw new Refusal('`path` must end in .png.')
  const bytes = await captureScreenshot(chromium.tabs.cdp, chromium.tabs.current, await clipOf(action))
  await (await context.sandbox()).writeFile(path, bytes, 'write')
  const shows = context.vision && bytes.length <= MAX_IMAGE_BYTES
  return {
    message: `The screenshot is \`${path}\` (${bytes.length} bytes); ${visibility(context, shows)}.`,
    show: 'nothing',
    ...(shows && { media: [{ type: 'image', mimeType: 'image/png', base64: bytes.toString('base64') }] as const }),
  }
}

function visibility({ vision }: ToolContext, shows: boolean): string {
  if (shows) return 'it is shown here'
  return vision ? 'it is too large to be shown' : 'this model can’t be shown images'
}

/** The part of the page that the arguments ask for. Undefined: what is in view. */
async function clipOf({ chromium, args }: ActionContext): Promise<Clip | undefined> {
  const { page, tabs, input } = chromium
  const main = page.main(tabs.current)
  if (args.ref !== undefined) {
    const box = await input.boxOf(targetOf(chromium, args))
    const { scrolled } = await page.call(main, 'about', null, ABOUT)
    return { ...box, x: box.x + scrolled.x, y: box.y + scrolled.y }
  }
  if (args.text === undefined) return undefined
  if (args.text !== 'full') throw new Refusal('`text` must be "full", for the whole page, or be left out.')
  return { x: 0, y: 0, ...(await page.call(main, 'size', null, SIZE)) }
}

export async function pdf({ chromium, args, context, count }: ActionContext): Promise<ActionResult> {
  const path = args.path ?? `outputs/page-${count('pdf')}.pdf`
  if (!/\.pdf$/i.test(path)) throw new Refusal('`path` must end in .pdf.')
  const sandbox = await context.sandbox()
  await sandbox.writeFile(path, printToPdf(chromium.tabs.cdp, chromium.tabs.current), 'write')
  return { message: `The page is printed to \`${path}\`.`, show: 'nothing' }
}

export async function download({ chromium, args, context }: ActionContext): Promise<ActionResult> {
  const { tabs, navigation, input } = chromium
  const { downloads } = tabs
  const begun = downloads.begun
  await forcingDownloads(chromium, async () => {
    if (args.url !== undefined) await navigation.open(tabs.current, args.url)
    else await input.click(targetOf(chromium, args), false)
  })
  if (!(await tabs.until(() => downloads.begun > begun || tabs.current.dialog !== undefined, DOWNLOAD_BEGINS_MS))) {
    throw new Refusal('No download began: there is no file at that address or behind that element.')
  }
  await tabs.until(() => downloads.active === 0, Math.max(0, context.remainingMs() - 2_000))
  return { message: '', show: 'nothing', downloadTo: args.path }
}

const PAUSED_RESPONSES = { patterns: [{ urlPattern: '*', resourceType: 'Document', requestStage: 'Response' }] }

/** While `act` runs, documents are downloaded instead of shown (`forceDownload` in tabs.ts). */
async function forcingDownloads({ tabs }: Chromium, act: () => Promise<unknown>): Promise<void> {
  const { session } = tabs.current
  await tabs.cdp.call('Fetch.enable', { session, params: PAUSED_RESPONSES })
  try {
    await act()
  } finally {
    await tabs.cdp.call('Fetch.disable', { session }).catch(() => {})
  }
}

export async function upload({ chromium, args, context }: ActionContext): Promise<ActionResult> {
  const path = required(args.path, 'path', 'the file of the working directory to upload')
  const target = targetOf(chromium, args)
  const file = await copyIntoBrowser(chromium.cell, await context.sandbox(), path)
  await attachFile(chromium, target, file)
  await chromium.navigation.settle(target.frame.tab)
  return { message: `\`${path}\` is chosen in [${args.ref}].`, show: 'change' }
}

/** Sets the file of a file input, or of the file chooser that a click on the element opens. */
async function attachFile(chromium: Chromium, target: Target, file: string): Promise<void> {
  const { tabs, page } = chromium
  const { frame, ref } = target
  if (await page.call(frame, 'takesFiles', ref, z.boolean())) {
    const objectId = await page.objectOf(frame, ref)
    const params = { files: [file], objectId }
    await tabs.cdp.call('DOM.setFileInputFiles', { session: frame.session, params })
    return
  }
  await attachByChooser(chromium, target, file)
}

async function attachByChooser({ tabs, input }: Chromium, target: Target, file: string): Promise<void> {
  const { tab, session } = target.frame
  const intercept = (enabled: boolean) =>
    tabs.cdp.call('Page.setInterceptFileChooserDialog', { session, params: { enabled } })
  tab.chooser = undefined
  await intercept(true)
  try {
    await input.click(target, false)
    await tabs.until(() => tab.chooser !== undefined, CHOOSER_OPENS_MS)
    const { chooser } = tab as Tab
    if (!chooser) throw new Refusal(`[e${target.ref}] is not a file input, and clicking it opens no file chooser.`)
    const params = { files: [file], backendNodeId: chooser.node }
    await tabs.cdp.call('DOM.setFileInputFiles', { session: chooser.session, params })
  } finally {
    await intercept(false).catch(() => {})
  }
}
