/**
 * Runs the programs of docs/start.md on a faulty network. Each prints the same as without faults, and starts one run.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openUnreliableProxy, type Plan, type UnreliableProxy } from '../clients/unreliable-proxy.ts'
import { type Server, startServer } from '../support/server.ts'
import { blocksOf } from './blocks.ts'
import { openSnippetRunner } from './snippet-runner.ts'

const PROGRAMS = blocksOf('docs/start.md').filter(({ rule }) => rule.kind === 'file')

let server: Server
let proxy: UnreliableProxy
beforeAll(async () => {
  server = await startServer()
  proxy = await openUnreliableProxy(server.url)
})
afterAll(async () => {
  await proxy?.close()
  await server?.stop()
})

const TROUBLE: Readonly<Record<string, readonly Plan[]>> = {
  'breaks after three events, then refuses a connection': [{ cutAfterEvents: 3 }, 'refuse'],
  'breaks again and again': [
    { cutAfterEvents: 1 },
    { cutAfterEvents: 4 },
    { cutAfterEvents: 2 },
    { cutAfterEvents: 5 },
  ],
  'loses the response to the creation': ['lose-answer'],
  'has a proxy that responds with 503': [{ status: 503, headers: { 'retry-after': '1' } }],
}

describe.each(PROGRAMS)('the program in $language', ({ language, text }) => {
  test.each(Object.entries(TROUBLE))('prints the same output when the network %s', async (_, plans) => {
    const key = await server.createKey('network')
    const runs = async () =>
      (await server.get('/v1beta/interactions?pageSize=100', { 'x-svc-api-key': key })).body.interactions.length
    const before = await runs()
    proxy.reset()
    proxy.plan(...plans)
    const runner = openSnippetRunner({ ...server, url: proxy.url, key })
    try {
      expect(await runner.run(language, text)).toBe('calls code_execution\n17 * 23 = 391')
    } finally {
      runner.close()
    }
    expect(proxy.requests.length).toBeGreaterThan(plans.length)
    expect(await runs()).toBe(before + 1)
  })
})

test('docs/start.md has a program in each language', () => {
  expect(PROGRAMS.map(({ language }) => language)).toEqual(['ts', 'python'])
})
