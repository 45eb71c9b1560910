/**
 * S18 for large content: uploaded skills, input files by URL, and pages that the browser opens. None of it blocks the
 * event loop of the server, or of the sandbox host, for more than 50 ms of processor time.
 */
import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, test } from 'vitest'
import { openSite, type Site } from '../browser/site.ts'
import { hostileText } from '../event-loops/texts.ts'
import { type Attack, startWatchedServer, type WatchedServer } from '../event-loops/watched-server.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { rounds, seeded } from '../support/prove.ts'
import { ALL_TOOLS, type Call, python, readFile, scripted } from '../support/tool-run.ts'
import { skillText, type ZipEntry, zip } from '../support/zip.ts'

const HOUR = 3_600_000
const SMALL = 10
const LONG = 200_000
const MIB = 1024 * 1024
const PATH = '/v1beta/interactions'
const random = seeded('S18')

let provider: FakeProvider
let site: Site
let server: WatchedServer
/** The page that the site serves at `/page`, and the file at `/file`. */
let page = ''
let serveFile: (response: ServerResponse) => unknown = (response) => response.end()

beforeAll(async () => {
  provider = await openFakeProvider({ record: false })
  provider.when('', () => ({ text: 'Done.' }))
  site = await openSite({
    '/page': (_, response) => response.setHeader('content-type', 'text/html; charset=utf-8').end(page),
    '/file': (_, response) => serveFile(response),
  })
  server = await startWatchedServer(provider, [`127.0.0.1:${site.port}`])
})
afterAll(async () => {
  await server?.stop()
  await Promise.all([provider?.close(), site?.close()])
})

// ---------------------------------------------------------------- uploads

async function upload(body: Uint8Array<ArrayBuffer>, type: string): Promise<void> {
  const headers = { 'x-svc-api-key': server.key, 'content-type': type }
  const response = await fetch(`${server.url}/v1beta/skills`, { method: 'POST', headers, body })
  await response.text()
}

/** A form with one file, with the attacker's boundary, headers and content. */
function form(boundary: string, header: string, content: string): Buffer<ArrayBuffer> {
  return Buffer.from(`--${boundary}\r\n${header}\r\n\r\n${content}\r\n--${boundary}--\r\n`)
}

const SKILL: ZipEntry = { name: 'SKILL.md', data: skillText('greeting', 'Greets.') }

function attackByUpload(): Attack {
  const text = hostileText(random)
  const [what, make] = random.pick<readonly [string, (text: string) => [Uint8Array<ArrayBuffer>, string]]>([
    ['a zip that is none', (it) => [Buffer.from(it), 'application/zip']],
    ['front matter', (it) => [zip([{ name: 'SKILL.md', data: `---\n${it}\n---\n` }]), 'application/zip']],
    [
      'a skill’s description',
      (it) => [zip([{ name: 'SKILL.md', data: skillText('greeting', it) }]), 'application/zip'],
    ],
    ['the name of an entry', (it) => [zip([SKILL, { name: it.slice(0, 20_000), data: 'x' }]), 'application/zip']],
    ['the content of an entry', (it) => [zip([SKILL, { name: 'a.md', data: it }]), 'application/zip']],
    ['form: a header', (it) => [form('b', it, 'x'), 'multipart/form-data; boundary=b']],
    [
      'form: a file name',
      (it) => [
        form('b', `Content-Disposition: form-data; name="file"; filename="${it}"`, 'x'),
        'multipart/form-data; boundary=b',
      ],
    ],
    [
      'form: content like its boundary',
      (it) => [
        form('b', 'Content-Disposition: form-data; name="file"; filename="a"', `\r\n--${it}`),
        'multipart/form-data; boundary=b',
      ],
    ],
  ])
  return {
    name: `upload, ${what}: ${text.name}`,
    make: (small) => upload(...make(text.of(small ? SMALL : LONG).toWellFormed())),
  }
}

/** Zips at and beyond the limits on size and number of files. */
const LARGE_ZIPS: readonly Attack[] = [
  {
    name: '999 files',
    entries: (size: number) => Array.from({ length: size }, (_, i) => ({ name: `f/${i}`, data: 'x' })),
    size: 999,
  },
  {
    name: '60,000 entries',
    entries: (size: number) => Array.from({ length: size }, (_, i) => ({ name: `${i}`, data: '' })),
    size: 60_000,
  },
  {
    name: '29 MiB that packs to nothing',
    entries: (size: number) => [{ name: 'a', data: Buffer.alloc(size) }],
    size: 29 * MIB,
  },
  {
    name: '2,000 folders in one another',
    entries: (size: number) => [{ name: `${'d/'.repeat(size)}f`, data: 'x' }],
    size: 2_000,
  },
].map(({ name, entries, size }) => {
  const bodies = { small: zip([SKILL, ...entries(3)]), large: zip([SKILL, ...entries(size)]) }
  return { name: `upload, ${name}`, make: (small) => upload(small ? bodies.small : bodies.large, 'application/zip') }
})

test('no upload blocks an event loop', { timeout: HOUR }, async () => {
  await server.judgeAll('uploads', [...LARGE_ZIPS, ...Array.from({ length: rounds(500, 24) }, attackByUpload)])
})

// ---------------------------------------------------------------- large files of a sandbox

/** The largest files that the tools search on the server. */
const SEARCHED: readonly Attack[] = ['\n', 'a\n', 'a b c\n'].map((unit) => ({
  name: `file_read, file_write, edits in ${JSON.stringify(unit)} × n`,
  make(small) {
    const size = small ? SMALL : 16 * MIB - 10
    const fill = python(`open('f', 'w').write((${JSON.stringify(unit)} * ${size})[:${size}])`)
    const edits = [
      { find: 'a b x\n'.repeat(small ? 1 : 1_000), replace: '' },
      { find: 'a', replace: 'aa', all: true },
    ]
    const calls = [fill, readFile('f', { startLine: 2 }), { name: 'file_write', args: { path: 'f', edits } }]
    return run(calls, { tools: ALL_TOOLS })
  },
}))

test('no large file of a sandbox blocks an event loop', { timeout: HOUR }, async () => {
  await server.judgeAll('large files', SEARCHED)
})

// ---------------------------------------------------------------- input files by URL

function run(calls: readonly Call[], request: object) {
  return server.post(PATH, { instruction: scripted(provider, calls), ...request })
}

function attackByFile(): Attack {
  const text = hostileText(random)
  const printable = (it: string) => it.replace(/[^\t\x20-\x7e]/g, '?').trim()
  const [what, serve] = random.pick<readonly [string, (response: ServerResponse, text: string) => unknown]>([
    ['its content', (response, it) => response.end(it)],
    [
      'its content, in small pieces',
      (response, it) => {
        for (let at = 0; at < it.length; at += 50) response.write(it.slice(at, at + 50))
        response.end()
      },
    ],
    ['its type', (response, it) => response.setHeader('content-type', printable(it).slice(0, 8_000)).end('x')],
    [
      'a redirect',
      (response, it) => response.writeHead(302, { location: `/${encodeURIComponent(it).slice(0, 8_000)}` }).end(),
    ],
    [
      'many header fields',
      (response, it) => {
        const value = printable(it).slice(0, 10)
        for (let i = 0; i < (it.length > SMALL ? 500 : 3); i++) response.setHeader(`x-${i}`, value)
        response.end('x')
      },
    ],
    [
      'a picture’s head',
      (response, it) => response.end(Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.from(it)])),
    ],
    ['a PDF', (response, it) => response.end(`%PDF-1.4\n${it}`)],
  ])
  const name = what === 'a PDF' ? 'a.pdf' : 'a.png'
  return {
    name: `file by URL, ${what}: ${text.name}`,
    make(small) {
      const content = text.of(small ? SMALL : LONG).toWellFormed()
      serveFile = (response) => serve(response, content)
      return run([readFile(name)], { tools: ['file_read'], files: [{ name, url: site.url('/file') }] })
    },
  }
}

const LARGE_FILES: readonly Attack[] = [
  { name: '60 MiB at once', bytes: 60 * MIB, piece: 60 * MIB },
  { name: '1 MiB in pieces of 16 bytes', bytes: MIB, piece: 16 },
].map(({ name, bytes, piece }) => ({
  name: `file by URL, ${name}`,
  make(small) {
    serveFile = async (response) => {
      for (let at = 0; at < (small ? SMALL : bytes); at += piece) {
        if (!response.write(Buffer.alloc(piece))) await new Promise((resolve) => response.once('drain', resolve))
      }
      response.end()
    }
    return run([], { files: [{ name: 'a', url: site.url('/file') }] })
  },
}))

test('no input file by URL blocks an event loop', { timeout: HOUR }, async () => {
  await server.judgeAll('files by URL', [...LARGE_FILES, ...Array.from({ length: rounds(300, 16) }, attackByFile)])
})

// ---------------------------------------------------------------- pages of the browser

function attackByPage(): Attack {
  const text = hostileText(random)
  const escaped = (it: string) => it.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
  const script = (it: string) => JSON.stringify(it).replaceAll('<', '\\u003c')
  const [what, html] = random.pick<readonly [string, (text: string) => string]>([
    ['its title', (it) => `<title>${escaped(it)}</title>`],
    ['its text', (it) => `<p>${escaped(it)}`],
    ['a label', (it) => `<button aria-label="${escaped(it)}">`],
    ['a link', (it) => `<a href="${escaped(it)}">x</a>`],
    ['its markup', (it) => it],
    ['a dialog', (it) => `<script>alert(${script(it)})</script>`],
    ['its console', (it) => `<script>for (let i = 0; i < 100; i++) console.log(${script(it)})</script>`],
    ['a download’s name', (it) => `<a id=a download="${escaped(it)}" href="data:,x">x</a><script>a.click()</script>`],
    [
      'an address it moves to',
      (it) => `<script>history.pushState(0, '', '/?' + ${script(it)}.slice(0, 60000))</script>`,
    ],
  ])
  return {
    name: `page, ${what}: ${text.name}`,
    make(small) {
      page = html(text.of(small ? SMALL : LONG).toWellFormed())
      return visit()
    },
  }
}

const LARGE_PAGES: readonly Attack[] = [
  ['20,000 buttons', (size: number) => '<button>x</button>'.repeat(size), 20_000],
  ['5,000 elements in one another', (size: number) => '<div role=group>'.repeat(size), 5_000],
  ['300 frames', (size: number) => '<iframe srcdoc="<button>x"></iframe>'.repeat(size), 300],
  ['4 MiB of text', (size: number) => `<p>${'word '.repeat(size)}`, 800_000],
].map(([name, html, size]) => ({
  name: `page, ${name}`,
  make(small: boolean) {
    page = (html as (size: number) => string)(small ? 3 : (size as number))
    return visit()
  },
}))

function visit() {
  const call = { name: 'browser', args: { action: 'open', url: site.url('/page') } }
  return run([call], { tools: ['browser'] })
}

test('no page that the browser opens blocks an event loop', { timeout: HOUR }, async () => {
  await server.judgeAll('pages', [...LARGE_PAGES, ...Array.from({ length: rounds(300, 12) }, attackByPage)])
})
