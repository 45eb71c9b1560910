/** The browser and the run's files: screenshots, PDFs, downloads, uploads. */
import { execFileSync } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { inflateSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { drive, ref } from './drive.ts'
import { openSite, type Site } from './site.ts'

const LONG = 'x'.repeat(3 * 1024 * 1024)

const PAGE = `<!doctype html><title>Files</title><style>body { margin: 0; background: rgb(10, 200, 30) }</style>
<h1 style="margin-top: 1500px">Far below</h1>
<div role=img aria-label=Square style="width:40px;height:30px;background:rgb(0,0,250)"></div>
<a href=/report.csv>Report</a>
<a href=/endless.bin>Endless</a>
<form action=/upload method=post enctype=multipart/form-data>
  <label>File <input type=file name=file></label><button>Send</button>
</form>
<input type=file id=picker style="display:none" onchange="chosen.textContent = this.files[0].name + ' ' + this.files[0].size">
<button onclick="picker.click()">Choose</button><p id=chosen></p>`

let site: Site
let provider: FakeProvider
let server: Server
let uploaded = ''

beforeAll(async () => {
  site = await openSite({
    '/': PAGE,
    '/report.csv': (_, answer) => {
      answer.writeHead(200, {
        'content-type': 'text/csv',
        'content-disposition': 'attachment; filename="../../Report 1.csv"',
      })
      answer.end(`a,b\n${LONG}`)
    },
    '/page.html': '<title>A page</title><p>Saved, not shown',
    '/endless.bin': (_, answer) => {
      answer.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': `${1024 ** 3}` })
      answer.write('x'.repeat(100_000))
    },
    '/upload': async (asked, answer) => {
      for await (const chunk of asked) uploaded += chunk
      answer.end('Thank you')
    },
  })
  provider = await openFakeProvider()
  const model = { provider: 'openai-compatible', baseUrl: provider.url, model: 'fake', vision: true }
  server = await startServer({
    provider,
    config: { models: { 'svc-3.5-flash': model }, egress: { allowPrivate: [`127.0.0.1:${site.port}`] } },
  })
})

afterAll(async () => {
  await server.stop()
  await rm(server.dataDir, { recursive: true, force: true })
  await provider.close()
  await site.close()
})

/** The size, and the color of the top left pixel, which PNG filters don't change. */
function lookAt(png: Buffer): { size: [number, number]; color: number[] } {
  const parts: Buffer[] = []
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at)
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + length))
    at += 12 + length
  }
  const size: [number, number] = [png.readUInt32BE(16), png.readUInt32BE(20)]
  return { size, color: [...inflateSync(Buffer.concat(parts)).subarray(1, 4)] }
}

test('screenshots and PDFs become output files; downloads and uploads use the run’s files', async () => {
  const { body, outputs } = await drive(
    server,
    provider,
    [
      { action: 'open', url: site.url('/') },
      { action: 'screenshot' },
      { action: 'screenshot', text: 'full', path: 'outputs/whole.png' },
      (_, [page = '']) => ({ action: 'screenshot', ref: ref(page, '"Square"'), path: 'outputs/square.png' }),
      { action: 'pdf' },
      (_, [page = '']) => ({ action: 'click', ref: ref(page, '"Report"') }),
      (_, [page = '']) => ({ action: 'download', ref: ref(page, '"Report"'), path: 'outputs/report.csv' }),
      { action: 'download', url: site.url('/page.html') },
      { action: 'open', url: site.url('/report.csv') },
      (_, [page = '']) => ({ action: 'click', ref: ref(page, '"Endless"') }),
      (_, [page = '']) => ({ action: 'upload', ref: ref(page, '"Choose"'), path: 'downloads/page.html' }),
      (_, [page = '']) => ({ action: 'upload', ref: ref(page, 'file "File'), path: 'note.txt' }),
      (_, [page = '']) => ({ action: 'upload', ref: ref(page, 'file "File'), path: 'missing.txt' }),
      (_, [page = '']) => ({ action: 'click', ref: ref(page, 'button "Send"') }),
      { action: 'screenshot', path: '../../etc/passwd.png' },
      { tool: 'file_read', args: { path: '.' } },
      { tool: 'file_read', args: { path: 'downloads' } },
    ],
    {
      tools: ['browser', 'file_read'],
      files: [{ name: 'note.txt', content: 'a note', encoding: 'utf-8' }],
    },
  )
  const [, , , , , clicked, , saved, opened, endless, chosen, , missing, sent, outside, root, downloads] = outputs
  const files = new Map<string, Buffer>()
  for (const { name, url } of body.files) files.set(name, Buffer.from(await (await fetch(url)).arrayBuffer()))
  expect([...files.keys()].sort()).toEqual(['page-1.pdf', 'report.csv', 'screenshot-1.png', 'square.png', 'whole.png'])
  expect(lookAt(files.get('screenshot-1.png')!)).toEqual({ size: [1280, 800], color: [10, 200, 30] })
  expect(lookAt(files.get('square.png')!)).toEqual({ size: [40, 30], color: [0, 0, 250] })
  const whole = lookAt(files.get('whole.png')!)
  expect(whole.size[0]).toBe(1280)
  expect(whole.size[1]).toBeGreaterThan(1500)
  expect(execFileSync('pdftotext', ['-', '-'], { input: files.get('page-1.pdf')!, encoding: 'utf8' })).toContain(
    'Far below',
  )
  expect(files.get('report.csv')!.toString()).toBe(`a,b\n${LONG}`)

  expect(clicked).toContain(`Downloaded \`downloads/_.._Report 1.csv\` (${LONG.length + 4} bytes)`)
  expect(saved).toContain('Downloaded `downloads/page.html`')
  expect(opened).toMatch(/is a file to download, not a page\.\nDownloaded `downloads\/_\.\._Report 1-2\.csv`/)
  expect(endless).toMatch(/"endless\.bin" was not downloaded: it is larger than \d+ bytes\./)
  expect(chosen).toMatch(/is chosen in \[e\d+\]\.[\s\S]*page\.html 40/)
  expect(missing).toContain('There is no file `missing.txt`.')
  expect(sent).toContain('Thank you')
  expect(uploaded).toMatch(/name="file"; filename="note\.txt"[\s\S]*a note/)
  expect(outside).toMatch(/`\.\.\/\.\.\/etc\/passwd\.png` (is not a usable path|can't be written)/)
  expect(root).toMatch(/downloads\/\nnote\.txt \(6 bytes\)\noutputs\//)
  expect(downloads).toMatch(
    /_\.\._Report 1-2\.csv \(\d+ bytes\)\n_\.\._Report 1\.csv \(\d+ bytes\)\npage\.html \(\d+ bytes\)$/,
  )
  // The model got the three screenshots and no other images.
  const images = provider.requests
    .at(-1)!
    .body.messages.flatMap(({ content }) =>
      typeof content === 'string' || content === null ? [] : content.filter(({ type }) => type === 'image_url'),
    )
  expect(images).toHaveLength(3)
})
