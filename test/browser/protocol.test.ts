/** The DevTools protocol with a browser that a page has taken over: no message from it harms Errand. */
import { type Duplex, duplexPair } from 'node:stream'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { createCdp, type ProtocolEvent } from '../../src/tools/browser/cdp.ts'
import { openTabs } from '../../src/tools/browser/tabs.ts'

const MIB = 1024 * 1024

/** The browser's end of the pipe, which the test can send anything through. */
function openPeer() {
  const [ours, theirs] = duplexPair()
  const events: ProtocolEvent[] = []
  const cdp = createCdp(ours, (event) => events.push(event))
  theirs.resume()
  return { cdp, events, theirs }
}

const HOSTILE: readonly [string, string | Buffer][] = [
  ['no JSON', 'x'],
  ['nothing', ''],
  ['a list', '[1, 2]'],
  ['null', 'null'],
  ['an answer that nobody asked for', '{"id": 999, "result": {}}'],
  ['an id that is no number', '{"id": "1", "result": {}}'],
  ['an id beyond all numbers', '{"id": 1e400, "result": {}}'],
  ['a method that is no string', '{"method": 5}'],
  ['an error that is none', '{"id": 1, "error": 7}'],
  ['bytes that are no UTF-8', Buffer.from([0xff, 0xfe, 0x80])],
  ['lists in lists', '['.repeat(1_000_000)],
  ['the prototype', '{"__proto__": {"id": 1}, "constructor": {"prototype": {"x": 1}}}'],
]

test.each(HOSTILE)('%s is ignored, and the next answer is received', async (_, said) => {
  const { cdp, theirs } = openPeer()
  const answered = cdp.call('Browser.getVersion', { answer: z.object({ product: z.string() }) })
  theirs.write(said)
  theirs.write('\0{"id":1,"result":{"product":"Chromium"}}\0')
  expect(await answered).toEqual({ product: 'Chromium' })
  cdp.close()
})

test('malformed and oversized answers are rejected; later messages are received', async () => {
  const { cdp, theirs, events } = openPeer()
  const answer = z.object({ data: z.string() })
  const [nonsense, large, good] = [1, 2, 3].map(() => cdp.call('Page.captureScreenshot', { answer }))
  const outcomes = Promise.allSettled([nonsense, large, good])
  theirs.write('{"id":1,"result":{"data":5}}\0{"id":2,"result":{"data":"')
  for (let i = 0; i < 20; i++) {
    if (!theirs.write(Buffer.alloc(MIB, 'x'))) await new Promise((resolve) => theirs.once('drain', resolve))
  }
  theirs.write('"}}\0{"id":3,"result":{"data":"x"}}\0{"method":"Page.loaded"}\0')
  expect(await outcomes).toMatchObject([
    { reason: { code: 'malformed' } },
    { reason: { code: 'malformed' } },
    { value: { data: 'x' } },
  ])
  expect(events).toEqual([{ method: 'Page.loaded', params: undefined, session: undefined }])
  cdp.close()
})

test('pending and later calls are rejected when the pipe ends', async () => {
  const { cdp, theirs } = openPeer()
  const waiting = cdp.call('Page.navigate').catch((error) => error.code)
  theirs.end()
  expect(await waiting).toBe('closed')
  expect(await cdp.call('Page.navigate').catch((error) => error.code)).toBe('closed')
})

const METHODS = [
  ...['Target.attachedToTarget', 'Target.detachedFromTarget', 'Inspector.targetCrashed', 'Page.frameStartedLoading'],
  ...['Page.javascriptDialogOpening', 'Page.javascriptDialogClosed', 'Page.fileChooserOpened', 'Fetch.requestPaused'],
  ...['Browser.downloadWillBegin', 'Browser.downloadProgress', 'constructor', '__proto__'],
]

/** Answers every call successfully. */
function obey(theirs: Duplex): void {
  let heard = ''
  theirs.setEncoding('utf8').on('data', (text: string) => {
    const messages = (heard + text).split('\0')
    heard = messages.pop()!
    for (const { id, method } of messages.map((message) => JSON.parse(message))) {
      const result = { targetInfos: [], targetId: 'first' }
      theirs.write(`${JSON.stringify({ id, result })}\0`)
      const params = { sessionId: 's', targetInfo: { targetId: 'first', type: 'page' } }
      if (method === 'Target.createTarget')
        theirs.write(`${JSON.stringify({ method: 'Target.attachedToTarget', params })}\0`)
    }
  })
}

test('no event, whatever its content, causes an error or exceeds a limit', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          method: fc.constantFrom(...METHODS),
          sessionId: fc.option(fc.constantFrom('s', 'other'), { nil: undefined }),
          params: fc.oneof(
            fc.jsonValue(),
            fc.record({
              targetInfo: fc.record({ targetId: fc.string(), type: fc.constantFrom('page', 'iframe', 'x') }),
              sessionId: fc.string(),
            }),
            fc.record({
              guid: fc.uuid(),
              suggestedFilename: fc.string(),
              state: fc.constantFrom('completed', 'x'),
              receivedBytes: fc.double(),
              totalBytes: fc.double(),
            }),
            fc.record({ type: fc.constantFrom('alert', 'confirm', 'x'), message: fc.string() }),
          ),
        }),
        { maxLength: 30 },
      ),
      async (events) => {
        const [ours, theirs] = duplexPair()
        obey(theirs)
        const tabs = await openTabs(ours, '/downloads', 1_000)
        for (const event of events) theirs.write(`${JSON.stringify(event)}\0`)
        await tabs.cdp.call('Browser.getVersion')
        expect(tabs.all.length).toBeLessThanOrEqual(10)
        expect(tabs.notices.take().length).toBeLessThanOrEqual(20)
        tabs.cdp.close()
      },
    ),
    { numRuns: 100 },
  )
})
