/** The console in a real browser, worked by keyboard: what it shows, what it says when it can't, and where the key goes. */
import { existsSync } from 'node:fs'
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Server, startServer } from '../support/server.ts'

const CHROMIUM = ['/usr/lib/chromium/chromium-headless-shell', '/usr/lib/chromium/chromium'].find(existsSync)
const HOSTILE = '<img src=x onerror=alert(1)>'

let server: Server
let browser: Browser
let page: Page
let complaints: string[]
let asked: string[]

beforeAll(async () => {
  const model = { provider: 'openai-compatible', baseUrl: 'http://127.0.0.1:9', model: 'm', apiKeyEnv: 'NO_SUCH_KEY' }
  server = await startServer({
    config: { models: { keyless: model, 'svc-3.5-flash': { provider: 'demo', model: 'm' } } },
  })
  // Nothing but our own page is opened in it: as root, Chromium has no sandbox of its own.
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
})
beforeEach(() => visit())
afterEach(() => page.context().close())

async function visit(options: BrowserContextOptions = {}): Promise<void> {
  await page?.context().close()
  page = await (await browser.newContext(options)).newPage()
  complaints = []
  asked = []
  page.on('console', (message) => complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('request', (request) => asked.push(request.url()))
  await page.goto(`${server.url}/console`)
}

/** Its field has the focus from the start. */
async function enter(key: string): Promise<void> {
  await page.locator('#key:focus').waitFor()
  await page.keyboard.type(key)
  await page.keyboard.press('Enter')
}

async function seen(): Promise<string> {
  await page.getByRole('heading', { name: 'Isolation' }).waitFor()
  return visible(page.locator('main'))
}

function visible(part: Locator): Promise<string> {
  // biome-ignore lint/performance/useDomNodeTextContent: what is hidden must not count.
  return part.innerText()
}

test('shows who has a key what this server is, and first what it does not enforce', async () => {
  await enter(server.key)
  const text = (await seen()).replaceAll(/\s+/g, ' ')
  const { sandbox, version } = (await server.get('/v1beta/server')).body
  expect(text).toContain(`Errand ${version}`)
  expect(text).toContain('Ready for work')
  expect(text).toContain(`${sandbox.attacks.refused} of ${sandbox.attacks.tried}`)
  expect(sandbox.notEnforced.length).toBeGreaterThan(0)
  const warnings = (await visible(page.getByRole('region', { name: 'Not enforced on this host' }))).toLowerCase()
  for (const fact of sandbox.notEnforced) {
    for (const part of fact.toLowerCase().split(/: (.*)/)) expect(warnings).toContain(part)
  }
  for (const fact of sandbox.enforced) expect(text.toLowerCase()).toContain(fact.toLowerCase().replace(':', ''))
  expect(text).toContain('web_search Name a service in search.provider')
  expect(text.indexOf('Not enforced')).toBeLessThan(text.indexOf('Isolation'))
  expect(complaints).toEqual([])
})

test('what the server says is text, whatever it looks like', async () => {
  await page.route('**/v1beta/server', async (route) => {
    const response = await route.fetch()
    const body = (await response.text()).replaceAll('is not set', HOSTILE).replaceAll('kernel:', `${HOSTILE}:`)
    await route.fulfill({ response, body })
  })
  await enter(server.key)
  expect((await seen()).split(HOSTILE)).toHaveLength(3)
  expect(complaints).toEqual([])
  expect(await page.locator('img').count()).toBe(0)
})

test('the key stays in the tab: not in the address, a cookie or local storage; forgotten when asked', async () => {
  await enter(server.key)
  await seen()
  expect(page.url()).toBe(`${server.url}/console`)
  expect(asked.join()).not.toContain(server.key)
  for (const url of asked) expect(url.startsWith(`${server.url}/`) || url.startsWith('data:'), url).toBe(true)
  expect(await page.context().storageState()).toEqual({ cookies: [], origins: [] })
  await page.reload()
  await seen()
  await page.getByRole('button', { name: 'Forget key' }).press('Enter')
  expect(await page.evaluate('sessionStorage.length')).toBe(0)
  await page.reload()
  await page.locator('#key:focus').waitFor()
})

test('says so of a wrong key, of one that can be none, and of none, and takes the next', async () => {
  for (const [key, sentence] of [
    ['errand_sk_wrong', 'The server does not know this key: it may be mistyped, expired or revoked.'],
    ['ключ', 'That is not an API key.'],
    ['', 'Enter a key.'],
  ] as const) {
    await enter(key)
    await page.getByText(sentence).waitFor()
    expect(await page.evaluate('sessionStorage.length')).toBe(0)
  }
  await enter(server.key)
  await seen()
})

test('an account that is switched off is told what to do, and once more when that is done', async () => {
  const set = (value: string) => server.errand(['settings', 'set', 'experimental.managedAgents', value])
  expect((await set('off')).code).toBe(0)
  try {
    await enter(server.key)
    await page.getByRole('heading', { name: 'Switched off for this account' }).waitFor()
    expect(await visible(page.locator('main'))).toContain('script/errand settings set experimental.managedAgents on')
  } finally {
    await set('on')
  }
  await page.keyboard.press('Enter')
  await seen()
})

test('a server that is away is told, and asked again when it is back', async () => {
  await page.context().setOffline(true)
  await enter(server.key)
  await page.getByRole('heading', { name: 'The server does not answer' }).waitFor()
  await page.context().setOffline(false)
  await page.keyboard.press('Enter')
  await seen()
})

test.each(['light', 'dark'] as const)('fits a phone and can be read in %s colours', async (colorScheme) => {
  await visit({ viewport: { width: 320, height: 640 }, colorScheme })
  await enter('wrong')
  await page.getByText('does not know this key').waitFor()
  await expectReadable()
  await enter(server.key)
  await seen()
  await expectReadable()
})

async function expectReadable(): Promise<void> {
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320)
  expect(await page.evaluate(`(${LOW_CONTRAST})()`)).toEqual([])
}

/** Every text that is seen with less contrast than WCAG's AA asks of small text. */
const LOW_CONTRAST = `() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number)
  const luminance = (colour) => {
    const [r, g, b] = channels(colour).map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const ground = (element) => {
    const colour = getComputedStyle(element).backgroundColor
    return channels(colour)[3] === 0 ? ground(element.parentElement) : colour
  }
  const texts = [...document.querySelectorAll('body *')].filter(
    (each) => each.checkVisibility() && [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()),
  )
  if (texts.length === 0) throw new Error('No text is seen.')
  return texts.flatMap((each) => {
    const [light, dark] = [luminance(getComputedStyle(each).color), luminance(ground(each))].sort((a, b) => b - a)
    const contrast = (light + 0.05) / (dark + 0.05)
    return contrast < 4.5 ? [each.textContent + ': ' + contrast.toFixed(2)] : []
  })
}`

test('runs its own script alone, under a policy that lets in nothing else', async () => {
  const { headers, text } = await server.get('/console')
  const policy = headers.get('content-security-policy')
  for (const rule of ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"]) {
    expect(policy).toContain(rule)
  }
  expect(policy).not.toMatch(/unsafe|\*/)
  expect(text).not.toMatch(/<script(?![^>]* src="\/console\/)|<style| style=| on\w+=|errand_sk_\w/)
})
