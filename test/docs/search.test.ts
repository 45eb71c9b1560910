/** Tests of the documentation's search: for the words that readers type, the expected page is the first result. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { ROOT } from './blocks.ts'

interface Result {
  readonly id: string
  readonly heading: string
  readonly page: string
  readonly languages: readonly string[]
}

let search: (query: string, language?: string) => Result[]
beforeAll(async () => {
  const assets = join(ROOT, 'site/dist/assets')
  const file = readdirSync(assets).find((name) => name.startsWith('passages.'))!
  const passages = JSON.parse(readFileSync(join(assets, file), 'utf8').slice('export default '.length))
  // Imported by path, because MiniSearch's types would add the DOM types to all tests.
  const { default: MiniSearch } = await import(join(ROOT, 'node_modules/minisearch/dist/es/index.js'))
  const { createSearch } = await import(join(ROOT, 'site/search-index.js'))
  search = createSearch(MiniSearch, passages)
})

const first = (query: string, count = 3) =>
  search(query)
    .slice(0, count)
    .map(({ id }) => id.split('#')[0])

describe('ranks matches in titles first', () => {
  test.each([
    ['troubleshooting', 'troubleshooting.html'],
    ['guarantees', 'guarantees.html'],
    ['production checklist', 'production.html'],
    ['local development', 'development.html'],
    ['cookbook', 'cookbook.html'],
    ['webhooks', 'webhooks.html'],
    ['configuration', 'configuration.html'],
    ['rate_limited', 'errors.html'],
    ['deadline_exceeded', 'errors.html'],
    ['Interaction', 'concepts.html'],
    ['sandbox.memoryMiB', 'configuration.html'],
    ['ERRAND_LEASE_S', 'configuration.html'],
  ])('%s', (query, page) => {
    expect(first(query)).toContain(page)
  })
})

describe('knows synonyms', () => {
  test.each([
    ['SSE', 'stream'],
    ['server-sent events', 'stream'],
    ['retry', 'retr'],
    ['backoff', 'retr'],
    ['timeout', 'deadline|timeout'],
    ['rate limit', 'rate_limited|rate limit|429'],
    ['quota', 'rate_limited|rate limit|429'],
    ['backup', 'back up|backup'],
    ['nginx', 'proxy'],
  ])('%s finds %s', (query, heading) => {
    const found = search(query).slice(0, 5)
    expect(found.map((each) => each.heading.toLowerCase()).join('\n')).toMatch(new RegExp(heading))
  })
})

test('shows a method that both clients have once, in the chosen language', () => {
  const found = search('interactions.create', 'Python')
  expect(found[0]).toMatchObject({ id: 'client-python.html#interactions.create' })
  expect([...found[0]!.languages].sort()).toEqual(['Python', 'TypeScript'])
  expect(found.filter(({ heading }) => heading === 'errand.interactions.create')).toHaveLength(1)
})

test('finds code, ranked below text', () => {
  expect(search('verifyWebhook').map(({ id }) => id)).toContain('webhooks.html#checking-the-signature')
})
