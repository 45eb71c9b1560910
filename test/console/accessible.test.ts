/** Accessibility of every page: axe on laptop and phone, in light and dark theme, and keyboard use. */
import type { Browser, BrowserContextOptions } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { becomeOwner, expectAccessible, openBrowser, PERSON, visit } from './browser.ts'

type StorageState = BrowserContextOptions['storageState']

let provider: FakeProvider
let server: Server
let browser: Browser
let runId: string
/** The owner's session. */
let owner: StorageState

beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when(
    '[look]',
    { toolCalls: [{ name: 'code_execution', args: { code: 'print(1)' } }] },
    { text: 'It is **one**.' },
  )
  server = await startServer({ provider, config: { console: { signUp: true } } })
  await server.post('/v1beta/agents', { id: 'looker', displayName: 'Looker', systemInstruction: 'Look.' })
  const { body } = await server.post('/v1beta/interactions', {
    instruction: '[look] What is it?',
    agentId: 'looker',
    tools: ['code_execution'],
    labels: { team: 'sales' },
  })
  runId = body.id
  await server.post('/v1beta/interactions', { instruction: '[look] Again.' })
  browser = await openBrowser()
  // The page of a server without an owner, before it has one.
  const { page, leave } = await visit(browser, server.url, { reducedMotion: 'reduce' })
  await page.getByRole('heading', { name: 'This server has no owner yet' }).waitFor()
  await expectAccessible(page, 'no owner')
  await becomeOwner(page, server)
  owner = await page.context().storageState()
  await leave()
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
  await provider?.close()
})

/** Each page, with a text that appears when it is loaded. */
const pages: readonly (readonly [path: () => string, text: string])[] = [
  [() => '', 'Latest runs'],
  [() => '/playground', 'Start a run'],
  [() => `/playground?run=${runId}`, 'View run'],
  [() => '/interactions', '[look] What is it?'],
  [() => '/interactions?status=failed', 'No runs match'],
  [() => `/interactions/${runId}`, 'one'],
  [() => `/interactions/${runId}?tab=timeline`, 'code_execution'],
  [() => `/interactions/${runId}?tab=settings`, 'System instruction'],
  [() => `/interactions/${runId}?tab=events`, 'tool_result'],
  [() => `/interactions/${runId}?tab=outside`, 'Network activity'],
  [() => `/interactions/${runId}?tab=json`, 'Response'],
  [() => '/interactions/int_none', 'Not found'],
  [() => `/compare?a=${runId}`, 'Select a run'],
  [() => '/agents', 'Looker'],
  [() => '/agents/new', 'Create agent'],
  [() => '/agents/looker', 'Save as version 2'],
  [() => '/agents/looker?tab=versions', 'current'],
  [() => '/agents/none', 'Not found'],
  [() => '/keys', 'last used'],
  [() => '/usage', 'No agent'],
  [() => '/usage?by=key&days=7&project=all', 'first key'],
  [() => '/usage?from=2020-01-01&to=2020-01-31', 'No runs in this period'],
  [() => '/usage?from=2020-01-01&to=2019-01-31', 'must not be before'],
  [() => '/settings', 'Not enforced on this host'],
  [() => '/settings/models', 'default'],
  [() => '/settings/mcp', 'No MCP servers yet'],
  [() => '/settings/skills', 'No skills yet'],
  [() => '/settings/credentials', 'No credentials yet'],
  [() => '/settings/members', 'Ada'],
  [() => '/settings/account', 'Managed agents'],
  [() => '/settings/audit', 'member.joined'],
  [() => '/settings/you', 'current'],
  [() => '/no/such/page', 'Page not found'],
]

const link = async (...options: string[]) => {
  const { stdout } = await server.errand(['console', 'link', ...options])
  return stdout.trim().replace(/.*\/console/, '')
}

test.each<[path: string | (() => Promise<string>), heading: string]>([
  ['', 'Sign in'],
  ['/sign-up', 'Create an account'],
  ['/welcome#used', 'This link is not valid'],
  [() => link('--reset-password', PERSON.email), 'Reset password'],
])('the signed-out page %s is accessible', async (path, heading) => {
  const { page, leave } = await visit(browser, server.url, { reducedMotion: 'reduce' })
  await page.goto(`${server.url}/console${typeof path === 'string' ? path : await path()}`)
  await page.getByRole('heading', { level: 1, name: heading }).waitFor()
  await expectAccessible(page, heading)
  await leave()
})

test.each(pages)('page %# is accessible', async (path, text) => {
  // Without animations, so that axe sees the final state.
  const { page, leave } = await visit(browser, server.url, { reducedMotion: 'reduce', storageState: owner })
  await page.goto(`${server.url}/console${path()}`)
  await page.getByText(text, { exact: false }).locator('visible=true').first().waitFor()
  await page.waitForLoadState('networkidle')
  await expectAccessible(page, path())
  await leave()
})

test('the command palette opens by keyboard, finds an agent and opens it; Escape closes it', async () => {
  const { page, leave } = await visit(browser, server.url, { reducedMotion: 'reduce', storageState: owner })
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.keyboard.press('Control+k')
  await page.getByPlaceholder('Search pages').fill('look')
  await page.getByRole('option', { name: 'Looker' }).waitFor()
  await expectAccessible(page, 'the palette')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Looker' }).waitFor()
  await page.keyboard.press('Control+k')
  await page.getByPlaceholder('Search pages').waitFor()
  await page.keyboard.press('Escape')
  await page.getByPlaceholder('Search pages').waitFor({ state: 'detached' })
  await page.keyboard.press('g')
  await page.keyboard.press('i')
  await page.getByRole('heading', { level: 1, name: 'Runs' }).waitFor()
  await leave()
})

test('the chosen theme is kept', async () => {
  const { page, leave } = await visit(browser, server.url, { storageState: owner })
  await page.getByRole('button', { name: /^Your account/ }).click()
  await page.getByRole('menuitem', { name: 'Dark' }).click()
  await page.reload()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  expect(await page.evaluate('getComputedStyle(document.documentElement).colorScheme')).toBe('dark')
  await leave()
})
