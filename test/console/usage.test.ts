/** The usage page in a real browser: charts, table, filters, CSV download, budget. */
import { readFile } from 'node:fs/promises'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { becomeOwner, expectAccessible, openBrowser, type Visitor, visit } from './browser.ts'

let provider: FakeProvider
let server: Server
let browser: Browser
let visitor: Visitor
let page: Page

beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when('[hi]', () => ({ text: 'Hi.' }))
  provider.when('[broken]', () => ({ fault: 'status:400' }))
  const model = { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake' }
  const models = { 'svc-3.5-flash': { ...model, price: { input: 30_000, output: 250_000 } }, plain: model }
  server = await startServer({ config: { models } })
  browser = await openBrowser()
  visitor = await visit(browser, server.url, { reducedMotion: 'reduce' })
  page = visitor.page
  await becomeOwner(page, server)
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
  await provider?.close()
})

const row = (name: string) => page.getByRole('row', { name: new RegExp(`^${name} `) })

test('without runs, the page explains what is counted', async () => {
  await page.getByRole('link', { name: 'Usage' }).click()
  await page.getByText('No runs in this period').waitFor()
})

test('runs, tokens, cost and duration are shown by day, as charts and tables', async () => {
  await server.post('/v1beta/agents', { id: 'greeter', displayName: 'Greeter' })
  await server.post('/v1beta/interactions', { instruction: '[hi]', agentId: 'greeter' })
  await server.post('/v1beta/interactions', { instruction: '[hi]', agentId: 'greeter' })
  await server.post('/v1beta/interactions', { instruction: '[hi]', model: 'plain' })
  await server.post('/v1beta/interactions', { instruction: '[broken]' })
  await page.reload()
  await page.getByText('4 · 25 % failed').waitFor()
  // Twice 10 input and 5 output tokens, at 30,000 and 250,000 dollars per million.
  await page.getByText('$3.10', { exact: true }).first().waitFor()
  for (const title of ['Runs', 'Tokens', 'Cost', 'Run duration']) {
    const plot = page.getByRole('figure', { name: title })
    expect(await plot.locator('svg :is(rect, path)').count()).toBeGreaterThan(0)
    expect(await plot.getByRole('row').count()).toBe(31)
  }
  const today = new Date().toISOString().slice(0, 10)
  const figures = page.getByRole('figure', { name: 'Runs' }).getByRole('row', { name: new RegExp(`^${today} `) })
  expect((await figures.textContent())?.slice(10)).toBe('310')
})

test('usage is grouped by agent, model and key, the highest first', async () => {
  await row('Greeter').getByText('$3.10').waitFor()
  await row('No agent').getByText('50 %').waitFor()
  await page.getByLabel('Group by').selectOption('Model')
  await row('plain').waitFor()
  const names = await page.getByRole('region', { name: 'By model' }).getByRole('rowheader').allTextContents()
  expect(names).toEqual(['svc-3.5-flash', 'plain'])
  await page.getByLabel('Group by').selectOption('Key')
  await row('first key').waitFor()
})

test('filters apply to the whole page, and are in the URL', async () => {
  await page.getByLabel('Model', { exact: true }).selectOption('plain')
  await page.getByText('1 · 0 % failed').waitFor()
  expect(new URL(page.url()).searchParams.get('model')).toBe('plain')
  await page.reload()
  await page.getByText('1 · 0 % failed').waitFor()
  await page.getByLabel('Agent', { exact: true }).selectOption('Greeter')
  await page.getByText('No runs in this period').waitFor()
  await page.getByLabel('Model', { exact: true }).selectOption('Any model')
  await page.getByText('2 · 0 % failed').waitFor()
  await page.getByLabel('Period').selectOption('Custom range')
  await page.getByLabel('To', { exact: true }).fill('2026-01-31')
  await page.getByLabel('From', { exact: true }).fill('2026-01-01')
  await page.getByText('No runs in this period').waitFor()
  await page.getByLabel('Period').selectOption('Last 7 days')
  await page.getByText('2 · 0 % failed').waitFor()
})

test('the shown usage can be downloaded as CSV', async () => {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download CSV' }).click(),
  ])
  expect(download.suggestedFilename()).toMatch(/^usage-.*\.csv$/)
  const [head, ...lines] = (await readFile(await download.path(), 'utf8')).trim().split('\r\n')
  expect(head).toMatch(/^day,key_id,key,runs,/)
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain(',first key,2,0,0,20,10,3.1,')
})

test('an owner sets a budget, and sees when it is exceeded', async () => {
  await page.getByLabel('Monthly budget in US dollars').fill('1.00')
  await page.getByLabel('Alert at').fill('50')
  await page.getByLabel('Stop at the limit').check()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Exceeded', { exact: true }).waitFor()
  await page.reload()
  await page.getByText('of $1.00').waitFor()
  await expectAccessible(page, 'a budget that is spent')
  expect(await page.getByLabel('Alert at').inputValue()).toBe('50')
  expect((await server.post('/v1beta/interactions', { instruction: '[hi]' })).status).toBe(403)
  await page.getByLabel('Monthly budget in US dollars').fill('')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('No budget').waitFor()
  expect((await server.post('/v1beta/interactions', { instruction: '[hi]' })).status).toBe(200)
})

test('there are no CSP violations and no exceptions', () => {
  expect(visitor.complaints.filter((text) => !/status of 401/.test(text))).toEqual([])
})
