/**
 * The tree that script/rootfs builds, as the root of sandboxes, through the HTTP API: what a user gets who runs that one
 * command. The model's description of the inside matches what is inside.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { drive, ref } from '../browser/drive.ts'
import { openSite, type Site } from '../browser/site.ts'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { bash, javascript, python, toolRunner } from '../support/tool-run.ts'
import { DRIVER } from './fixture.ts'
import { builtTree, ROOTFS } from './trees.ts'

const PAGE = `<title>Here</title><button onclick="this.textContent = 'Pressed ' + 6 * 7">Press</button>`
const BUILDING_MS = 15 * 60_000

let home: string
let provider: FakeProvider
let server: Server
let site: Site
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'errand-test-'))
  const from = ['--from', await builtTree('whole')]
  provider = await openFakeProvider()
  site = await openSite({ '/': PAGE })
  const sandbox = { pool: 0, driver: DRIVER.driver, memoryMiB: 768 }
  const egress = { allowPrivate: [`127.0.0.1:${site.port}`] }
  if (DRIVER.driver === 'docker') {
    const { dockerHost, runtime } = DRIVER
    const image = 'errand-whole'
    execFileSync(ROOTFS, [...from, '--image', image], {
      env: { ...process.env, DOCKER_HOST: dockerHost },
      stdio: 'pipe',
    })
    server = await startServer({ provider, config: { egress, sandbox: { ...sandbox, runtime, dockerHost, image } } })
  } else {
    const rootfs = join(home, 'rootfs') // as the data directory is, closed to everybody else
    execFileSync(ROOTFS, [...from, rootfs], { stdio: 'pipe' })
    server = await startServer({ provider, config: { egress, sandbox: { ...sandbox, rootfs } } })
  }
}, BUILDING_MS)
afterAll(async () => {
  await server?.stop()
  await provider?.close()
  await site?.close()
  rmSync(home, { recursive: true, force: true })
})

const run = toolRunner(
  () => server,
  () => provider,
)

test('the model gets a description of what is inside', async () => {
  const { answer } = await run([])
  expect(answer.status, answer.text).toBe(200)
  const system = provider.requests.at(-1)!.body.messages.find(({ role }) => role === 'system')
  const inside = /Inside: (.*)/.exec(String(system?.content))?.[1]
  expect(inside).toMatch(/^Python 3\.\d+ \(numpy, pandas, scipy, sympy, matplotlib, Pillow, openpyxl, .*requests.*\)/)
  expect(inside).toMatch(/Node 24, bash, git, jq, ripgrep, sqlite3, curl, pdftotext and pdftoppm \(poppler\), qpdf/)
  expect(inside).not.toMatch(/ffmpeg|gcc/)
})

test('a table is read, grouped, charted and kept as a workbook', async () => {
  const code = `
import pandas as pd, numpy as np, matplotlib.pyplot as plt
frame = pd.DataFrame({'city': ['Oslo', 'Rome', 'Oslo', 'Rome'], 'rain': [3.0, 1.0, 5.0, np.nan]})
means = frame.groupby('city')['rain'].mean()
frame.to_excel('outputs/rain.xlsx', index=False)
means.plot.bar(title='Rain')
print(means.to_dict())`
  const again = `
import openpyxl
from PIL import Image
sheet = openpyxl.load_workbook('outputs/rain.xlsx').active
print([cell.value for cell in sheet[2]], Image.open('outputs/figure-1.png').size[0] > 100)`
  const { body, outputs } = await run([python(code), python(again)])
  expect(outputs[0]).toContain("{'Oslo': 4.0, 'Rome': 1.0}")
  expect(outputs[1]).toContain("['Oslo', 3] True")
  const files = (body.files as { name: string }[]).map(({ name }) => name)
  expect(files.sort()).toEqual(['figure-1.png', 'rain.xlsx'])
})

test('a PDF is written, read and turned into a picture', async () => {
  const write = `
from reportlab.pdfgen.canvas import Canvas
canvas = Canvas('paper.pdf')
canvas.drawString(72, 720, 'Minutes of the meeting')
canvas.save()`
  const read =
    'pdftotext paper.pdf - | rg -o "Minutes.*"; pdftoppm -png -r 50 paper.pdf page; file page-1.png; qpdf --check paper.pdf'
  const { outputs } = await run([python(write), bash(read)])
  expect(outputs[1]).toMatch(/^Minutes of the meeting\npage-1\.png: PNG image data/)
  expect(outputs[1]).toContain('No syntax or stream encoding errors found')
})

test('git, jq, sqlite3 and JavaScript are at hand', async () => {
  const code = `git init -q repo && cd repo && echo x > x && git add x && git -c user.name=a -c user.email=a@b commit -qm one
git log --format=%s; echo '{"a": [1, 2]}' | jq -c .a; sqlite3 :memory: 'select 6 * 7'; whoami`
  const { outputs } = await run([bash(code), javascript('[1, 2, 3].map((n) => n * 2)')])
  expect(outputs[0]).toContain('one\n[1,2]\n42\nerrand')
  expect(outputs[1]).toContain('[ 2, 4, 6 ]')
})

test('the browser is real: Chromium in a sandbox of the same root', async () => {
  const { outputs } = await drive(server, provider, [
    { action: 'open', url: site.url('/') },
    (page) => ({ action: 'click', ref: ref(page, '"Press"') }),
    { action: 'screenshot', path: 'outputs/page.png' },
  ])
  expect(outputs.join('\n')).toContain('Pressed 42')
  expect(site.asked[0]).toBe('GET /')
})
