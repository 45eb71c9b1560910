/** Sign-in by OpenID Connect in a real browser: the button, the provider's pages, and new users. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type IdentityProvider, openIdentityProvider } from '../support/identity-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { firstOwner, invite as inviteBy, type Member } from '../support/visitor.ts'
import { expectAccessible, openBrowser, type Visitor, visit } from './browser.ts'

let idp: IdentityProvider
let server: Server
let browser: Browser
let owner: Member
let visitor: Visitor
let page: Page

beforeAll(async () => {
  idp = await openIdentityProvider()
  server = await startServer({ config: { console: { oidc: idp.config } } })
  idp.open(server.url)
  owner = await firstOwner(server)
  browser = await openBrowser()
  visitor = await visit(browser, server.url, { reducedMotion: 'reduce' })
  page = visitor.page
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
  await idp?.close()
})

async function comeInAs(login: string): Promise<void> {
  await page.getByRole('button', { name: 'Continue with Example ID' }).click()
  await page.getByPlaceholder('Enter any login').fill(login)
  await page.getByPlaceholder('and password').fill('x')
  await page.getByRole('button', { name: 'Sign-in' }).click()
  await page.getByRole('button', { name: 'Continue' }).click()
}

test('a new user sees what to do, and can join by an invitation', async () => {
  await comeInAs('carol')
  await page.getByRole('heading', { level: 1, name: 'Hello, carol' }).waitFor()
  await page.getByText('not a member of an account').waitFor()
  await expectAccessible(page, 'no account')
  const { body } = await owner.post(`${owner.account}/invites`, { role: 'developer' })
  await page.goto(body.link)
  await page.getByRole('button', { name: 'Join' }).click()
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
})

test('a link opens its page after the sign-in', async () => {
  await page.getByRole('button', { name: /^Your account/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.goto(`${server.url}/console/keys`)
  await page.getByRole('button', { name: 'Continue with Example ID' }).click()
  await page.getByRole('heading', { level: 1, name: 'API keys' }).waitFor()
})

test('a user with a password is asked to use it', async () => {
  const member = await inviteBy(server, owner, 'developer')
  const { email } = (await member.get('/console/api/me')).body.user
  const other = await visit(browser, server.url)
  page = other.page
  await comeInAs(email.replace('@example.org', ''))
  await page.getByRole('alert').getByText('Sign in with the password').waitFor()
  expect(await page.title()).toContain('Sign in')
  await other.leave()
})
