/** The console in a real browser, as tests use it: watched for complaints, and looked at by axe. */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { expect } from 'vitest'
import type { Server } from '../support/server.ts'

const CHROMIUM = ['/usr/lib/chromium/chromium-headless-shell', '/usr/lib/chromium/chromium'].find(existsSync)
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export const LAPTOP = { width: 1280, height: 800 }
export const PHONE = { width: 390, height: 844 }

/** Nothing but our own pages is opened in it: as root, Chromium has no sandbox of its own. */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
}

export interface Visitor {
  readonly page: Page
  /** What the browser logged: refused by the policy, not found, thrown. */
  readonly complaints: readonly string[]
  /** The addresses of all requests. */
  readonly asked: readonly string[]
  leave(): Promise<void>
}

/** A new visitor with nothing stored, on that page of the console. */
export async function visit(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Visitor> {
  const context = await browser.newContext({ viewport: LAPTOP, ...options })
  const page = await context.newPage()
  const complaints: string[] = []
  const asked: string[] = []
  page.on('console', (message) => complaints.push(`${message.text()} ${message.location().url}`))
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('request', (request) => asked.push(request.url()))
  await page.goto(`${url}/console`)
  return { page, complaints, asked, leave: () => context.close() }
}

export const PERSON = { name: 'Ada', email: 'ada@example.org', password: 'a sentence of my own' }

/** Uses the one-time link that the start printed, and is the owner from then on. */
export async function becomeOwner(page: Page, server: Pick<Server, 'output' | 'url'>): Promise<void> {
  const path = /\/console\/welcome#\w+/.exec(server.output())?.[0]
  await page.goto(server.url + path)
  await page.getByRole('heading', { level: 1, name: 'Welcome to Errand' }).waitFor()
  await page.getByLabel('Name').fill(PERSON.name)
  await page.getByLabel('E-mail').fill(PERSON.email)
  await page.getByLabel('Password').fill(PERSON.password)
  await page.getByRole('button', { name: 'Create the owner' }).click()
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
}

/**
 * Holds the page to WCAG 2.2 AA by axe, and to its width: on a laptop and on a phone, in light and in dark colours. axe is
 * evaluated over the debugger's wire: the page's own policy would not let it in.
 */
export async function expectAccessible(page: Page, what: string): Promise<void> {
  await page.evaluate(AXE)
  for (const viewport of [LAPTOP, PHONE]) {
    await page.setViewportSize(viewport)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      // What is looked at is what was painted, in the colours that were asked for.
      await page.waitForFunction(`matchMedia('(prefers-color-scheme: ${colorScheme})').matches`)
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
      const rules = colorScheme === 'light' ? RULES : { runOnly: { type: 'rule', values: ['color-contrast'] } }
      expect(await violations(page, rules), `${what}, ${viewport.width} wide, ${colorScheme}`).toEqual([])
    }
    expect(await page.evaluate('document.documentElement.scrollWidth'), `${what} fits`).toBe(viewport.width)
  }
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize(LAPTOP)
}

const RULES = { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }

async function violations(page: Page, options: object): Promise<string[]> {
  const found = (await page.evaluate(`axe.run(document, ${JSON.stringify(options)})`)) as {
    violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[]
  }
  return found.violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('; ')}`,
  )
}
