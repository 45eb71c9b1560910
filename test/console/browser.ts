/** A real browser for tests of the console, which records console errors and runs axe. */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { expect } from 'vitest'
import type { Server } from '../support/server.ts'

const CHROMIUM = ['/usr/lib/chromium/chromium-headless-shell', '/usr/lib/chromium/chromium'].find(existsSync)
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export const LAPTOP = { width: 1280, height: 800 }
export const PHONE = { width: 390, height: 844 }

/** Without Chromium's sandbox, which does not work as root. It opens only Errand's own pages. */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
}

export interface Visitor {
  readonly page: Page
  /** Errors in the browser's log: CSP violations, failed requests, exceptions. */
  readonly complaints: readonly string[]
  /** The URLs of all requests. */
  readonly asked: readonly string[]
  leave(): Promise<void>
}

/** Opens the console in a new browser context. */
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

/** Becomes the owner by the one-time link that the server printed. */
export async function becomeOwner(page: Page, server: Pick<Server, 'output' | 'url'>): Promise<void> {
  const path = /\/console\/welcome#\w+/.exec(server.output())?.[0]
  await page.goto(server.url + path)
  await page.getByRole('heading', { level: 1, name: 'Welcome to Errand' }).waitFor()
  await page.getByLabel('Name').fill(PERSON.name)
  await page.getByLabel('Email').fill(PERSON.email)
  await page.getByLabel('Password').fill(PERSON.password)
  await page.getByRole('button', { name: 'Create owner' }).click()
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
}

/**
 * Checks the page with axe against WCAG 2.2 AA, and that it does not scroll sideways: on laptop and phone, in light and dark
 * theme. axe is evaluated through the debugger, because the page's CSP would block it.
 */
export async function expectAccessible(page: Page, what: string): Promise<void> {
  await page.evaluate(AXE)
  for (const viewport of [LAPTOP, PHONE]) {
    await page.setViewportSize(viewport)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      // Waits until the page is painted in the requested theme.
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

/** Only violations: collecting the passed checks of every element takes axe most of its time. */
const ONLY_VIOLATIONS = { resultTypes: ['violations'], preload: false }
const RULES = { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }

async function violations(page: Page, options: object): Promise<string[]> {
  const settings = JSON.stringify({ ...ONLY_VIOLATIONS, ...options })
  const found = (await page.evaluate(`axe.run(document, ${settings}).then((found) => found.violations)`)) as {
    id: string
    nodes: { html: string; failureSummary?: string }[]
  }[]
  return found.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('; ')}`,
  )
}
