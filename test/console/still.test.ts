/** Layout stability: content that is loaded later does not move the page. */
import type { Browser, BrowserContextOptions } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { becomeOwner, LAPTOP, openBrowser, PHONE, visit } from './browser.ts'

/** A tenth of the cumulative layout shift that web.dev/cls rates as good. */
const MOST = 0.01

let provider: FakeProvider
let server: Server
let browser: Browser
let runId: string
let storageState: BrowserContextOptions['storageState']

beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when(
    '[look]',
    {
      text: 'I draw it.',
      toolCalls: [
        {
          name: 'code_execution',
          args: {
            code: 'import os; os.makedirs("outputs"); print("x\\n" * 40)\nopen("outputs/a.csv", "w").write("a,b\\n1,2\\n")',
          },
        },
      ],
    },
    { text: '# It is\n\nmany lines.' },
  )
  server = await startServer({ provider })
  await server.post('/v1beta/agents', { id: 'looker', displayName: 'Looker', systemInstruction: 'Look.' })
  const request = {
    instruction: '[look]',
    agentId: 'looker',
    tools: ['code_execution'],
    files: [{ name: 'a', content: 'a' }],
  }
  for (let i = 0; i < 12; i++) runId = (await server.post('/v1beta/interactions', request)).body.id
  browser = await openBrowser()
  const { page, leave } = await visit(browser, server.url)
  await becomeOwner(page, server)
  storageState = await page.context().storageState()
  await leave()
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
  await provider?.close()
})

const pages: readonly (readonly [path: () => string, text: string])[] = [
  [() => '', 'Latest runs'],
  [() => '/playground', 'Start a run'],
  [() => '/interactions', '[look]'],
  [() => `/interactions/${runId}`, 'many lines.'],
  [() => `/interactions/${runId}?tab=timeline`, 'code_execution'],
  [() => '/agents', 'Looker'],
  [() => '/agents/looker', 'Save as version 2'],
  [() => '/keys', 'last used'],
  [() => '/settings', 'Not enforced on this host'],
  [() => '/settings/models', 'default'],
  [() => '/settings/members', 'Ada'],
  [() => '/settings/account', 'Managed agents'],
]

test.each(pages)('page %# does not shift while it loads', async (path, text) => {
  for (const viewport of [LAPTOP, PHONE]) {
    const { page, leave } = await visit(browser, server.url, { viewport, storageState })
    await page.addInitScript(`
      window.moved = []
      new PerformanceObserver((list) => {
        for (const { value, sources } of list.getEntries()) {
          window.moved.push([value, sources.map(({ node }) => node?.outerHTML?.slice(0, 120) ?? String(node?.textContent))])
        }
      }).observe({ type: 'layout-shift', buffered: true })`)
    // Delays responses, so that they arrive after the first paint.
    await page.route('**/{v1beta,console/api}/**', async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 150))
      await route.continue()
    })
    await page.goto(`${server.url}/console${path()}`)
    await page.getByText(text, { exact: false }).locator('visible=true').first().waitFor()
    await page.waitForLoadState('networkidle')
    const moved = (await page.evaluate('window.moved')) as readonly (readonly [number, readonly string[]])[]
    const sum = moved.reduce((all, [value]) => all + value, 0)
    expect(sum, `${viewport.width} wide: ${JSON.stringify(moved)}`).toBeLessThan(MOST)
    await leave()
  }
})
