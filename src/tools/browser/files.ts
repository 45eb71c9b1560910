/**
 * Files between the browser's sandbox and the run's sandbox: downloads, uploads, screenshots and PDFs. Errand copies them
 * from one sandbox to the other; the two share no directory.
 */
import { z } from 'zod'
import type { Sandbox } from '../../sandbox/port.ts'
import { SandboxError } from '../../sandbox/port.ts'
import type { Cdp } from './cdp.ts'
import type { Download } from './downloads.ts'
import { Refusal } from './input.ts'
import type { Tab } from './tab.ts'

const MIB = 1024 * 1024
export const MAX_DOWNLOAD_BYTES = 64 * MIB
const MAX_UPLOAD_BYTES = 16 * MIB
const MAX_PDF_BYTES = 64 * MIB
const READ_BYTES = 1 * MIB
const PDF_MS = 60_000
/** Maximum height of a screenshot in pixels. A higher one would not be legible. */
const MAX_HEIGHT = 8_000

/** Paths in the browser's sandbox. */
export const DOWNLOADS = '/workspace/downloads'
const UPLOADS = '/workspace/uploads'

export interface Clip {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

const SHOT = z.object({ data: z.base64() })
const PRINTED = z.object({ stream: z.string() })
const PART = z.object({ data: z.string(), base64Encoded: z.boolean().optional(), eof: z.boolean() })

/** A PNG of the clip, in the coordinates of the document. Default: what is in view. */
export async function captureScreenshot(cdp: Cdp, tab: Tab, clip?: Clip): Promise<Buffer> {
  const bounded = clip && { ...clip, height: Math.min(clip.height, MAX_HEIGHT), scale: 1 }
  const params = { format: 'png', ...(bounded && { clip: bounded, captureBeyondViewport: true }) }
  const { data } = await cdp.call('Page.captureScreenshot', { session: tab.session, params, answer: SHOT })
  return Buffer.from(data, 'base64')
}

/** Streams the PDF, so that no protocol message is large. Throws Refusal if the PDF is too large. */
export async function* printToPdf(cdp: Cdp, tab: Tab): AsyncGenerator<Uint8Array> {
  const { session } = tab
  const params = { transferMode: 'ReturnAsStream', printBackground: true }
  const { stream: handle } = await cdp.call('Page.printToPDF', { session, params, answer: PRINTED, timeoutMs: PDF_MS })
  try {
    for (let total = 0; ; ) {
      const part = await cdp.call('IO.read', { session, params: { handle, size: READ_BYTES }, answer: PART })
      const bytes = Buffer.from(part.data, part.base64Encoded ? 'base64' : 'latin1')
      total += bytes.length
      if (total > MAX_PDF_BYTES) throw new Refusal(`The PDF would be larger than ${MAX_PDF_BYTES} bytes.`)
      if (bytes.length > 0) yield bytes
      if (part.eof) return
    }
  } finally {
    await cdp.call('IO.close', { session, params: { handle } }).catch(() => {})
  }
}

/** Moves a complete download to `wanted`, or to an unused name in downloads/. Returns a message for the model. */
export async function moveDownload(
  browser: Sandbox,
  open: () => Promise<Sandbox>,
  { guid, name }: Download,
  wanted: string | undefined,
): Promise<string> {
  const source = `${DOWNLOADS}/${guid}`
  try {
    const sandbox = await open()
    const path = wanted ?? (await freeName(sandbox, name))
    let size = 0
    const count = (chunk: Uint8Array) => {
      size += chunk.length
      return chunk
    }
    await sandbox.writeFile(path, mapped(browser.openFile(source, MAX_DOWNLOAD_BYTES), count), 'write')
    return `Downloaded \`${path}\` (${size} bytes) into the working directory.`
  } catch (error) {
    if (!(error instanceof SandboxError) || ['unavailable', 'lost', 'stale'].includes(error.code)) throw error
    return `${JSON.stringify(name)} could not be moved into the working directory: ${error.message}`
  } finally {
    // Frees the space for the next download. The runner can't remove files, so it is made empty.
    await browser.writeFile(source, new Uint8Array(), 'write').catch(() => {})
  }
}

async function* mapped<T>(all: AsyncIterable<T>, change: (each: T) => T): AsyncGenerator<T> {
  for await (const each of all) yield change(each)
}

async function freeName(sandbox: Sandbox, name: string): Promise<string> {
  const taken = new Set<string>()
  try {
    const { entries } = await sandbox.list('downloads', { recursive: false, maxEntries: 10_000 })
    for (const { path } of entries) taken.add(path)
  } catch (error) {
    if (!(error instanceof SandboxError) || error.code !== 'not_found') throw error
  }
  const [, stem = name, ending = ''] = /^(.+?)((?:\.tar)?\.[^.]+)?$/.exec(name) ?? []
  for (let count = 1; ; count++) {
    const candidate = count === 1 ? name : `${stem}-${count}${ending}`
    if (!taken.has(candidate)) return `downloads/${candidate}`
  }
}

/** Copies a file of the run's sandbox into the browser's sandbox and returns its path there. Throws SandboxError. */
export async function copyIntoBrowser(browser: Sandbox, sandbox: Sandbox, path: string): Promise<string> {
  const name = path.split('/').at(-1) || 'file'
  const target = `${UPLOADS}/${name}`
  await browser.writeFile(target, sandbox.openFile(path, MAX_UPLOAD_BYTES), 'write')
  return target
}
