/** The pages for operators in a real browser: webhooks, MCP servers, models and their health. */
import { once } from 'node:events'
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type FakeMcp, openFakeMcp } from '../mcp/fake-mcp.ts'
import { type Server, startServer } from '../support/server.ts'
import { becomeOwner, expectAccessible, openBrowser, type Visitor, visit } from './browser.ts'

const TOKEN = 'the-token-of-the-tracker'

let provider: FakeProvider
let mcp: FakeMcp
let receiver: HttpServer
let server: Server
let browser: Browser
let visitor: Visitor
let page: Page
let hook: string

beforeAll(async () => {
  ;[provider, mcp] = await Promise.all([openFakeProvider(), openFakeMcp()])
  mcp.intercept = ({ headers }, response) => {
    if (headers.authorization === `Bearer ${TOKEN}`) return false
    response.writeHead(401).end()
    return true
  }
  mcp.tools = [{ name: 'find', description: `Finds tickets, with ${TOKEN}.` }]
  receiver = createServer((request, response) => response.writeHead(request.url === '/taken' ? 204 : 500).end())
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const address = `127.0.0.1:${(receiver.address() as AddressInfo).port}`
  hook = `http://${address}`
  const model = { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake' }
  server = await startServer({
    provider,
    config: {
      models: {
        'svc-3.5-flash': { ...model, price: { input: 0.3, output: 2.5 }, vision: true, fallbacks: ['other'] },
        other: { ...model, baseUrl: 'http://127.0.0.1:9/v1', price: { input: 0.3, output: 2.5 } },
      },
      mcp: { weather: { url: 'http://127.0.0.1:9/mcp' } },
      egress: { allowPrivate: [mcp.address, address, '127.0.0.1:9'] },
    },
  })
  browser = await openBrowser()
  visitor = await visit(browser, server.url, { reducedMotion: 'reduce' })
  page = visitor.page
  await becomeOwner(page, server)
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
  receiver?.close()
  await mcp?.close()
  await provider?.close()
})

const open = (path: string) => page.goto(`${server.url}/console/settings/${path}`)

test('webhooks are listed with their receivers, results and next attempts', async () => {
  await open('webhooks')
  await page.getByText('No webhooks yet').waitFor()
  await expectAccessible(page, 'no webhooks')
  provider.when('[notify]', { text: 'Done.' })
  const start = (path: string) =>
    server.post('/v1beta/interactions', { instruction: '[notify]', webhook: { url: `${hook}${path}` } })
  await start('/taken')
  const { body } = await start('/broken?token=a-secret-of-the-receiver')
  await page.reload()
  const list = page.getByRole('list', { name: 'Webhooks' })
  const failing = list.getByRole('listitem').filter({ hasText: 'pending' })
  await failing.getByText(/1 attempt, next in/).waitFor()
  await failing.getByText('500').waitFor()
  await list.getByRole('listitem').filter({ hasText: 'delivered' }).getByText('Status 204').waitFor()
  await failing.getByText(hook.slice('http://'.length)).waitFor()
  expect(await page.content()).not.toContain('a-secret-of-the-receiver')
  await expectAccessible(page, 'webhooks')
  await page.getByLabel('State').selectOption('Delivered')
  await failing.waitFor({ state: 'detached' })
  await page.getByLabel('State').selectOption('Pending')
  await failing.click()
  await page.getByText('Attempt 1').waitFor()
  expect(page.url()).toContain(`/console/interactions/${body.id}?tab=outside`)
})

test('MCP servers are checked as in a run, and no secret is shown', async () => {
  await server.post('/v1beta/credentials', { id: 'tracker', type: 'bearer', token: TOKEN })
  const authentication = { type: 'credential', credentialId: 'tracker' }
  for (const id of ['one', 'two']) {
    await server.post('/v1beta/agents', { id, mcp: [{ name: 'tickets', url: mcp.url, authentication }] })
  }
  await server.post('/v1beta/agents', { id: 'three', mcp: [{ name: 'open', url: mcp.url }] })
  await server.post('/v1beta/agents', { id: 'four', mcp: [{ name: 'inside', url: 'http://169.254.169.254/mcp' }] })
  await open('mcp')
  const row = (name: string) =>
    page.getByRole('list', { name: 'MCP servers' }).locator('> li').filter({ hasText: name })
  await row('tickets')
    .getByText(/^connected/)
    .waitFor()
  await row('tickets').getByText('Finds tickets, with [secret].').waitFor()
  await row('tickets').getByRole('link', { name: 'two' }).waitFor()
  await row('open').getByText('not reachable').waitFor()
  await row('inside').getByText('not reachable').waitFor()
  await row('weather').getByText('Not used by any agent.').waitFor()
  await row('weather').getByText('not reachable').waitFor()
  expect(await page.content()).not.toContain(TOKEN)
  await expectAccessible(page, 'MCP servers')
  mcp.tools = [{ name: 'close', description: 'Closes tickets.' }]
  await page.getByRole('button', { name: 'Check tickets again' }).click()
  await row('tickets').getByText('Closes tickets.').waitFor()
})

test('models are listed with their prices and health', async () => {
  provider.when('[down]', { fault: 'status:400', errorMessage: 'no such thing' })
  await server.post('/v1beta/interactions', { instruction: '[notify]' })
  await server.post('/v1beta/interactions', { instruction: 'x', model: 'other' })
  await open('models')
  const row = (name: string) =>
    page
      .getByRole('list', { name: 'Models' })
      .locator('> li')
      .filter({ has: page.getByText(name, { exact: true }) })
  await row('svc-3.5-flash').getByText('default').waitFor()
  await row('svc-3.5-flash').getByText('$0.30 input, $2.50 output', { exact: false }).waitFor()
  await row('svc-3.5-flash').getByText('fallback: other', { exact: false }).waitFor()
  await row('svc-3.5-flash').getByText('Healthy').waitFor()
  await row('other')
    .getByText(/Last call failed|Paused after failures/)
    .waitFor()
  await expectAccessible(page, 'models')
})

test('there are no CSP violations and no exceptions', () => {
  expect(visitor.complaints.filter((text) => !/status of 40[134]/.test(text))).toEqual([])
})
