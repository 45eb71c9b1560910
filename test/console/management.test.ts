/** Management in a real browser: keys, agents, skills, credentials, links, roles. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { zip } from '../support/zip.ts'
import { becomeOwner, expectAccessible, openBrowser, PERSON, type Visitor, visit } from './browser.ts'

type Cookies = Awaited<ReturnType<ReturnType<Page['context']>['storageState']>>

let provider: FakeProvider
let server: Server
let browser: Browser
let owner: Cookies
let viewer: Cookies
let visitor: Visitor
let page: Page
let runId: string

beforeAll(async () => {
  provider = await openFakeProvider()
  provider.when('[hello]', { text: 'Hello.' })
  server = await startServer({ provider })
  await server.post('/v1beta/agents', { id: 'greeter', displayName: 'Greeter', systemInstruction: 'Greet.' })
  runId = (await server.post('/v1beta/interactions', { instruction: '[hello]', agentId: 'greeter' })).body.id
  browser = await openBrowser()
  const first = await visit(browser, server.url)
  await becomeOwner(first.page, server)
  owner = await first.page.context().storageState()
  viewer = await join(first.page)
  await first.leave()
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
  await provider?.close()
})
beforeEach(async () => {
  await come(owner)
})
afterEach(() => visitor.leave())

async function come(storageState: Cookies | undefined): Promise<void> {
  await visitor?.leave()
  visitor = await visit(browser, server.url, { storageState, reducedMotion: 'reduce' })
  page = visitor.page
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
}

/** Joins by an invitation as a viewer. */
async function join(at: Page): Promise<Cookies> {
  await at.goto(`${server.url}/console/settings/members`)
  await at.getByRole('button', { name: 'Invite member' }).click()
  await at.getByLabel('Role').selectOption('viewer')
  await at.getByRole('button', { name: 'Create link' }).click()
  const link = (await at.getByRole('status', { name: 'Link' }).textContent()) ?? ''
  const guest = await visit(browser, server.url)
  await guest.page.goto(link)
  await guest.page.getByLabel('Name').fill('Grace')
  await guest.page.getByLabel('Email').fill('grace@example.org')
  await guest.page.getByLabel('Password').fill(PERSON.password)
  await guest.page.getByRole('button', { name: 'Join' }).click()
  await guest.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  const cookies = await guest.page.context().storageState()
  await guest.leave()
  return cookies
}

const open = (path: string) => page.goto(`${server.url}/console${path}`)
const works = async (key: string) => (await server.get('/v1beta/agents', { 'x-svc-api-key': key })).status

test('a key is rotated: the old one keeps working for a while, or ends immediately', async () => {
  await open('/keys')
  await page.getByRole('button', { name: 'Create key' }).first().click()
  await page.getByLabel('Name', { exact: true }).fill('Turning')
  await page.getByRole('button', { name: 'Create key' }).click()
  const shown = async () => {
    const text = (await page.getByRole('status', { name: 'API key' }).textContent()) ?? ''
    await expectAccessible(page, 'a new key')
    await page.getByRole('button', { name: 'Copy key' }).click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(text)
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    return text
  }
  const rotate = async (after: string) => {
    // Rotates the newest key of that name.
    await page.getByRole('button', { name: 'More actions for Turning' }).last().click()
    await page.getByRole('menuitem', { name: 'Rotate' }).click()
    await page.getByLabel('Old key expires').selectOption(after)
    await expectAccessible(page, 'a key that is rotated')
    await page.getByRole('button', { name: 'Rotate key' }).click()
    return shown()
  }
  const first = await shown()
  const second = await rotate('In 24 hours')
  expect([await works(first), await works(second)]).toEqual([200, 200])
  await page.getByText(/^expires/).waitFor()
  const third = await rotate('Immediately')
  expect([await works(first), await works(second), await works(third)]).toEqual([200, 401, 200])
  expect(await page.content()).not.toMatch(/errand_sk_\w{38}/)
})

test('the form of an agent has all settings, and the list is searchable', async () => {
  const headers = { 'x-svc-api-key': server.key, 'content-type': 'application/zip' }
  const body = zip([{ name: 'tidying/SKILL.md', data: '---\nname: tidying\ndescription: How to tidy.\n---\nTidy.\n' }])
  expect((await fetch(`${server.url}/v1beta/skills`, { method: 'POST', headers, body })).status).toBe(200)
  await server.post('/v1beta/credentials', { id: 'wiki', type: 'bearer', token: 'the-token-of-the-wiki' })
  await open('/agents/new')
  await page.getByLabel('Display name').fill('Complete')
  await page.getByPlaceholder('sales-analyst').fill('complete')
  await page.getByLabel('Description').fill('Has one of everything')
  await page.getByLabel('Model').selectOption('svc-3.1-pro')
  await page.getByRole('checkbox', { name: 'file_write' }).check()
  await page.getByText('Skills', { exact: true }).click()
  await page.getByRole('checkbox', { name: 'tidying' }).check()
  await page.getByText('MCP servers', { exact: true }).click()
  await page.getByRole('button', { name: 'Add server' }).click()
  await page.getByLabel('Name', { exact: true }).fill('wiki')
  await page.getByLabel('URL').fill('https://mcp.example.com/wiki')
  await page.getByLabel('Credential').selectOption('wiki')
  await page.getByLabel('Require approval').selectOption('Always')
  await page.getByText('Network', { exact: true }).click()
  await page.getByLabel('Network access').selectOption('Allowed hosts only')
  await page.getByLabel('Allowed hosts', { exact: true }).fill('pypi.org\n*.pythonhosted.org')
  await page.getByText('Limits', { exact: true }).click()
  await page.getByLabel('Run timeout', { exact: true }).fill('90')
  await page.getByLabel('Cost').fill('0.5')
  // The sticky button bar must not cover anything.
  await page.evaluate('scrollTo(0, 0)')
  await expectAccessible(page, 'the form of an agent')
  await page.getByRole('button', { name: 'Create agent' }).click()
  await page.getByRole('heading', { level: 1, name: 'Complete' }).waitFor()
  expect((await server.get('/v1beta/agents/complete')).body).toMatchObject({
    description: 'Has one of everything',
    model: 'svc-3.1-pro',
    tools: ['code_execution', 'file_read', 'file_write'],
    skills: ['tidying'],
    mcp: [
      {
        name: 'wiki',
        url: 'https://mcp.example.com/wiki',
        authentication: { type: 'credential', credentialId: 'wiki' },
        requireApproval: 'always',
      },
    ],
    network: { allow: ['pypi.org', '*.pythonhosted.org'] },
    policy: { maxTurnDuration: 90, maxCost: 0.5 },
  })
  await open('/agents')
  await page.getByText('Greeter').waitFor()
  await page.getByLabel('Search agents').fill('one of every')
  await page.getByText('Greeter').waitFor({ state: 'detached' })
  await page.getByRole('link', { name: 'Complete' }).waitFor()
  for (const path of ['agents/complete', 'skills/tidying', 'credentials/wiki'])
    await server.request('DELETE', `/v1beta/${path}`)
})

test('other sessions can be ended', async () => {
  const elsewhere = await signedInAgain()
  await open('/settings/you')
  await page.getByRole('button', { name: 'Sign out all other sessions' }).click()
  await page.getByText('Session ended', { exact: true }).waitFor()
  const other = await visit(browser, server.url, { storageState: elsewhere })
  await other.page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await other.leave()
})

test('restoring a version restores all settings, including those that the form does not show', async () => {
  const before = { policy: { maxTurnDuration: 60 }, labels: { team: 'a' }, tools: ['file_read'], network: 'disabled' }
  await server.post('/v1beta/agents', { id: 'whole', ...before })
  const change = {
    policy: { maxTurnDuration: null, maxOutputTokens: 500, sandbox: { memoryMiB: 300, cpus: 1 } },
    labels: { team: null, other: 'b' },
    tools: [],
    network: 'public',
    systemInstruction: 'More.',
  }
  await server.request('PATCH', '/v1beta/agents/whole', change)
  await open('/agents/whole?tab=versions')
  await page.getByRole('button', { name: 'Restore' }).click()
  await page.getByText('Saved as version 3').waitFor()
  const { body } = await server.get('/v1beta/agents/whole')
  const whole = ({ policy, labels, tools, network, systemInstruction }: typeof body) => ({
    ...{ policy, labels, tools, network, systemInstruction },
  })
  expect(whole(body)).toEqual(whole((await server.get('/v1beta/agents/whole/versions/1')).body))
})

test('an agent that was changed elsewhere meanwhile is not overwritten', async () => {
  await server.post('/v1beta/agents', { id: 'shared', systemInstruction: 'One.' })
  await open('/agents/shared')
  await page.getByLabel('System instruction').fill('Mine.')
  await server.request('PATCH', '/v1beta/agents/shared', { systemInstruction: 'Theirs.' })
  await page.getByRole('button', { name: 'Save as version 2' }).click()
  await page.getByText('Not saved').waitFor()
  await expectAccessible(page, 'what was not saved')
  expect((await server.get('/v1beta/agents/shared')).body.systemInstruction).toBe('Theirs.')
})

test('a skill is uploaded and its files can be viewed, in all versions', async () => {
  const skill = (text: string) =>
    zip([
      { name: 'greeting/SKILL.md', data: `---\nname: greeting\ndescription: How to greet.\n---\n# ${text}\n` },
      { name: 'greeting/scripts/greet.py', data: 'print("hello")\n', mode: 0o100_755 },
      { name: 'greeting/raw.bin', data: Buffer.from([0, 1, 2]) },
    ])
  const upload = (buffer: Buffer) =>
    page.getByLabel('Skill', { exact: true }).setInputFiles({ name: 'skill.zip', mimeType: 'application/zip', buffer })
  await open('/settings/skills')
  await page.getByText('No skills yet').waitFor()
  await upload(zip([{ name: 'README.md', data: 'no skill' }]))
  await page.getByRole('alert').getByText('SKILL.md').waitFor()
  await expectAccessible(page, 'a skill that is none')
  await upload(skill('Be <b>brief</b>'))
  await page.getByText('Uploaded greeting version 1').waitFor()
  await upload(skill('Be kind'))
  await page.getByText('Uploaded greeting version 2').waitFor()
  await page.getByRole('list', { name: 'Skills' }).getByText('How to greet.').click()
  const dialog = page.getByRole('dialog', { name: 'greeting' })
  await dialog.getByRole('region', { name: 'SKILL.md' }).getByText('# Be kind').waitFor()
  await expectAccessible(page, 'a skill')
  await dialog.getByLabel('Version').selectOption('Version 1')
  await dialog.getByRole('region', { name: 'SKILL.md' }).getByText('# Be <b>brief</b>').waitFor()
  await dialog.getByRole('button', { name: 'scripts/greet.py' }).click()
  await dialog.getByRole('region', { name: 'scripts/greet.py' }).getByText('print("hello")').waitFor()
  await dialog.getByRole('button', { name: 'raw.bin' }).click()
  await dialog.getByText('This file is not text').waitFor()
  page.once('dialog', (asked) => asked.accept())
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No skills yet').waitFor()
})

test('a credential is created and replaced, and its secret is never shown', async () => {
  const [secret, other] = ['s3cret-token-of-a-test', 'an0ther-token-of-a-test']
  await open('/settings/credentials')
  await page.getByRole('button', { name: 'Add credential' }).first().click()
  await page.getByLabel('Id').fill('tracker')
  await page.getByLabel('Allowed hosts').fill('api.example.com')
  await page.getByLabel('Token').fill(secret)
  await expectAccessible(page, 'a new credential')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('for api.example.com').waitFor()
  await page.getByRole('button', { name: 'More actions for tracker' }).click()
  await page.getByRole('menuitem', { name: 'Replace secret' }).click()
  expect(await page.getByLabel('Token').inputValue()).toBe('')
  await page.getByLabel('Token').fill(other)
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved').first().waitFor()
  await page.reload()
  await page.getByText('for api.example.com').waitFor()
  const seen = [await page.content(), (await server.get('/v1beta/credentials')).text, await server.stored.text()].join()
  for (const each of [secret, other]) expect(seen).not.toContain(each)
  page.once('dialog', (asked) => asked.accept())
  await page.getByRole('button', { name: 'More actions for tracker' }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByText('No credentials yet').waitFor()
})

test('a shared link opens the run for a member, from any project and after signing in', async () => {
  await open(`/interactions/${runId}`)
  await page.getByRole('button', { name: 'Share' }).click()
  await page.getByText('Link copied').waitFor()
  const link = (await page.evaluate('navigator.clipboard.readText()')) as string
  // Switches to another project, and signs out.
  await page.getByRole('button', { name: /^Project:/ }).click()
  await page.getByRole('menuitem', { name: 'New project' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Elsewhere')
  await page.getByRole('button', { name: 'Create project' }).click()
  await page.getByRole('button', { name: 'Project: Elsewhere' }).waitFor()
  await page.getByRole('button', { name: /^Your account/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.goto(link)
  await page.getByLabel('Email').fill('grace@example.org')
  await page.getByLabel('Password').fill(PERSON.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { level: 1, name: '[hello]' }).waitFor()
  await page.getByRole('region', { name: 'Answer' }).getByText('Hello.').waitFor()
  expect(page.url()).toBe(`${server.url}/console/interactions/${runId}`)
  // The shared cookies' session has ended, too.
  owner = await signedInAgain()
})

async function signedInAgain(): Promise<Cookies> {
  const again = await visit(browser, server.url)
  await again.page.getByLabel('Email').fill(PERSON.email)
  await again.page.getByLabel('Password').fill(PERSON.password)
  await again.page.getByRole('button', { name: 'Sign in' }).click()
  await again.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  const cookies = await again.page.context().storageState()
  await again.leave()
  return cookies
}

/** Each page, a text on it, and the controls that are not available to viewers. */
const CLOSED: readonly (readonly [path: string, text: string, words: readonly RegExp[]])[] = [
  ['', 'Latest runs', [/^New run$/]],
  ['/playground', 'Start a run', [/^Run$/, /^Attach files$/]],
  ['/interactions/RUN', 'Hello.', [/^Run again$/, /^Cancel$/]],
  ['/agents', 'Greeter', [/^Create/]],
  ['/agents/greeter', 'Greet.', [/^Save/, /^Run agent$/]],
  ['/agents/whole?tab=versions', 'Version 3', [/^Restore$/]],
  ['/agents/new', 'New agent', [/^Create agent$/]],
  ['/keys', 'first key', [/^Create key$/, /^More actions for/]],
  ['/settings/skills', 'No skills yet', [/^Upload/]],
  ['/settings/credentials', 'No credentials yet', [/^Add/]],
  ['/settings/members', 'Grace', [/^Invite/, /^More/]],
  ['/settings/account', 'Managed agents', [/^Rename$/, /^Managed agents$/]],
]

test.each(CLOSED)('a viewer can change nothing on %s', async (path, text, words) => {
  await come(viewer)
  await open(path.replace('RUN', runId))
  await page.getByText(text).locator('visible=true').first().waitFor()
  await page.waitForLoadState('networkidle')
  await expectAccessible(page, `${path} for a viewer`)
  for (const word of words) {
    for (const role of ['button', 'link', 'switch'] as const) {
      for (const control of await page.getByRole(role, { name: word }).all()) {
        expect(await control.isDisabled(), `${role} ${word}`).toBe(true)
      }
    }
  }
})

test('API calls of a viewer are refused', async () => {
  await come(viewer)
  await open('/agents/greeter')
  await page.getByText('Greeter').first().waitFor()
  const statuses = await page.evaluate(`(async () => {
    const me = await (await fetch('/console/api/me')).json()
    const headers = { 'X-Errand-Console': '1', 'X-Errand-Project': me.accounts[0].projects[0].id, 'Content-Type': 'application/json' }
    const call = async (method, path, body = '{}') => (await fetch(path, { method, headers, body })).status
    return [
      await call('POST', '/v1beta/interactions', '{"instruction":"x"}'),
      await call('PATCH', '/v1beta/agents/greeter', '{"displayName":"x"}'),
      await call('DELETE', '/v1beta/agents/greeter', null),
      await call('POST', '/v1beta/credentials', '{"type":"bearer","token":"x"}'),
      await call('DELETE', '/v1beta/interactions/${runId}', null),
    ]
  })()`)
  expect(statuses).toEqual([403, 403, 403, 403, 403])
})
