/**
 * Tests of the documentation site: pages, caching, content security policy, accessibility, search, and hosting on any
 * web server.
 */
import { readdirSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import mime from 'mime'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectAccessible, LAPTOP, openBrowser } from '../console/browser.ts'
import { EVERYTHING } from '../support/openapi.ts'
import { type Server, startServer } from '../support/server.ts'

const ROOT = resolve(import.meta.dirname, '../..')
/** The site that script/setup built. */
const SITE = join(ROOT, 'site/dist')
const PAGES = readdirSync(SITE).filter((name) => name.endsWith('.html') && name !== '404.html')

let server: Server
let browser: Browser

beforeAll(async () => {
  server = await startServer()
  browser = await openBrowser()
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
})

interface Reader {
  readonly page: Page
  /** Errors in the browser's console: requests blocked by the policy, missing files, exceptions. */
  readonly complaints: readonly string[]
  leave(): Promise<void>
}

async function open(address: string, options: BrowserContextOptions = {}): Promise<Reader> {
  const context = await browser.newContext({ viewport: LAPTOP, reducedMotion: 'reduce', ...options })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => complaints.push(`${message.text()} ${message.location().url}`))
  page.on('pageerror', (error) => complaints.push(error.message))
  await page.goto(new URL(address, `${server.url}/docs/`).href)
  return { page, complaints, leave: () => context.close() }
}

describe('the served site', () => {
  test('has every page of docs/, every operation, object and setting', async () => {
    const sources = (await readdir(join(ROOT, 'docs'))).filter((name) => name.endsWith('.md'))
    const named = sources.map((name) => (name === 'README.md' ? 'index.html' : name.replace(/md$/, 'html')))
    expect(PAGES).toEqual(
      expect.arrayContaining([...named, 'typescript.html', 'python.html', 'examples.html', 'security.html']),
    )
    const { body: api } = await server.get(EVERYTHING)
    const generated = PAGES.filter((name) => /^(?:reference-|objects|console-api)/.test(name))
    const text = (await Promise.all(generated.map((name) => server.get(`/docs/${name}`))))
      .map((page) => page.text)
      .join('')
    for (const methods of Object.values<Record<string, { operationId: string }>>(api.paths)) {
      for (const { operationId } of Object.values(methods)) expect(text).toContain(` id="${operationId}"`)
    }
    for (const name of Object.keys(api.components.schemas)) expect(text).toContain(` id="${name}"`)
    expect((await server.get('/docs/configuration.html')).text).toContain('ERRAND_LEASE_S')
  })

  test('redirects /docs to the first page, adds .html to names, and answers 404 with a page', async () => {
    const first = await fetch(`${server.url}/docs`)
    expect([first.status, first.url]).toEqual([200, `${server.url}/docs/`])
    expect((await server.get('/docs/start')).text).toBe((await server.get('/docs/start.html')).text)
    for (const path of ['/docs/none', '/docs/a/b/none.html', '/docs/..%2f..%2fpackage.json', '/docs/.built-from']) {
      const { status, headers, text } = await server.get(path)
      expect([status, headers.get('content-type')], path).toEqual([404, 'text/html; charset=utf-8'])
      expect(text).toContain('There is no such page')
    }
  })

  test('lets browsers cache pages by ETag, and assets without expiry', async () => {
    const page = await server.get('/docs/start.html')
    const etag = page.headers.get('etag') as string
    const again = await server.get('/docs/start.html', { 'if-none-match': etag })
    expect([again.status, again.text]).toEqual([304, ''])
    expect((await server.get('/docs/start.html', { 'if-none-match': '"other"' })).status).toBe(200)
    const style = /href="(assets\/style[^"]+)"/.exec(page.text)?.[1]
    const { headers } = await server.get(`/docs/${style}`)
    expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  })

  test('sends a policy that allows only the site’s own scripts, and no page has other scripts', async () => {
    for (const name of PAGES) {
      const { headers, text } = await server.get(`/docs/${name}`)
      expect(headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
      )
      expect(text, name).not.toMatch(/<script(?![^>]* src="assets\/)|<style| style=| on\w+="|errand_sk_\w/)
      expect(text.replaceAll(/<pre.*?<\/pre>/gs, ''), name).not.toMatch(/\bundefined\b/)
      expect(text, name).not.toMatch(/<(?:link|img|script)[^>]+(?:href|src)="(?:https?:)?\/\//)
    }
  })
})

describe('in a browser', () => {
  // axe is slow on the API reference, which lists every field of every object.
  test.each(PAGES)('%s is accessible and logs no errors', { timeout: 300_000 }, async (name) => {
    const { page, complaints, leave } = await open(name)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await expectAccessible(page, name)
    expect(complaints, name).toEqual([])
    await leave()
  })

  test('shows the chosen language on every page, after a choice by mouse or keyboard', async () => {
    const { page, leave } = await open('interactions.html')
    await page.getByRole('tab', { name: 'Python' }).first().click()
    expect(await page.getByRole('tab', { name: 'Python', selected: true }).count()).toBeGreaterThan(5)
    await page.goto(`${server.url}/docs/reference-agents.html`)
    const call = page.locator('#createAgent')
    await call.getByText('agent = errand.agents.create(').waitFor()
    await call.getByRole('tab', { name: 'Python' }).focus()
    await page.keyboard.press('ArrowLeft')
    await call.getByText('await errand.agents.create(').waitFor()
    await leave()
  })

  test('finds a setting, an error, an operation and a synonym, using only the keyboard', async () => {
    const { page, complaints, leave } = await open('start.html')
    for (const [words, option, heading] of [
      ['ERRAND_LEASE_S', 'Configuration', 'Configuration'],
      ['deadline_exceeded', 'Errors', 'Errors'],
      ['cancel', 'Cancel an interaction', 'Interactions API'],
      ['quota', 'rate_limited', 'Errors'],
    ] as const) {
      await page.keyboard.press('/')
      await page.getByRole('combobox').fill(words)
      await page.getByRole('option', { name: option }).first().waitFor()
      if (words === 'cancel') await expectAccessible(page, 'the search')
      while (!(await page.getByRole('option', { name: option, selected: true }).count())) {
        await page.keyboard.press('ArrowDown')
      }
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { level: 1, name: heading }).waitFor()
    }
    expect(complaints).toEqual([])
    await leave()
  })

  test('copies code exactly, and remembers the chosen theme', async () => {
    const { page, leave } = await open('start.html')
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const block = page.locator('figure', { hasText: 'keys create' }).first()
    await block.hover()
    await block.getByRole('button', { name: 'Copy' }).click()
    await block.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(await block.locator('code').textContent())
    await page.getByRole('button', { name: 'Theme: System' }).click()
    await page.getByRole('button', { name: 'Theme: Light' }).click()
    await page.reload()
    expect(await page.evaluate('getComputedStyle(document.documentElement).colorScheme')).toBe('dark')
    await leave()
  })
})

test('shows all content without scripts', async () => {
  const { page, leave } = await open('interactions.html', { javaScriptEnabled: false })
  for (const text of ['for await (const event of stream)', 'case "tool_call":', 'call -N']) {
    expect(await page.getByText(text).first().isVisible(), text).toBe(true)
  }
  await leave()
})

test('works under any path of any web server, without broken links', async () => {
  const plain = createServer(async (request, response) => {
    const path = decodeURIComponent(new URL(request.url as string, 'http://x').pathname.slice('/some/where/'.length))
    const bytes = await readFile(join(SITE, path)).catch(() => undefined)
    response.writeHead(bytes ? 200 : 404, { 'content-type': mime.getType(path) ?? 'text/plain' }).end(bytes)
  })
  await new Promise<void>((listening) => plain.listen(0, '127.0.0.1', listening))
  try {
    const base = `http://127.0.0.1:${(plain.address() as AddressInfo).port}/some/where/`
    const wanted = new Set<string>()
    for (const name of PAGES) {
      const html = await readFile(join(SITE, name), 'utf8')
      for (const [, link = ''] of html.matchAll(/(?:href|src)="([^"#]+)/g)) {
        if (!/^(?:https?|mailto):/.test(link)) wanted.add(link)
      }
    }
    for (const link of wanted) expect((await fetch(base + link)).status, link).toBe(200)
    const { page, complaints, leave } = await open(`${base}start.html`)
    await page.keyboard.press('/')
    await page.getByRole('combobox').fill('sandbox')
    await page.getByRole('option').first().waitFor()
    expect(complaints).toEqual([])
    await leave()
  } finally {
    plain.close()
  }
})
