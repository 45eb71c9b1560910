/** Signed file URLs: each is valid for one file and one hour, and its content is never executed by a browser. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Edge, openEdge } from './edge.ts'

let edge: Edge
let now = Date.UTC(2026, 4, 20)
beforeAll(async () => {
  edge = await openEdge({ clock: () => now })
  edge.blobs.set('blob1', '<script>alert(1)</script>')
  edge.engine.onSubmit = (run) => {
    run.files = [
      { name: 'charts/50% "größe".html', blob: 'blob1', size: 25, mimeType: 'text/html', sha256: 'aa' },
      { name: 'gone.txt', blob: 'blob2', size: 1, mimeType: 'text/plain', sha256: 'bb' },
    ]
    run.end()
  }
})
afterAll(() => edge.close())

async function fileUrls(): Promise<string[]> {
  const { body } = await edge.call('POST', '/v1beta/interactions', { instruction: 'x' })
  return body.files.map(({ url }: { url: string }) => url.replace('https://errand.example', ''))
}

const get = (url: string) => edge.app.inject({ method: 'GET', url })

test('serves a file without a key, as a download that browsers do not execute', async () => {
  const [url] = await fileUrls()
  const answer = await get(url!)
  expect(answer.statusCode).toBe(200)
  expect(answer.body).toBe('<script>alert(1)</script>')
  expect(answer.headers).toMatchObject({
    'content-disposition': `attachment; filename="50_ _gr__e_.html"; filename*=UTF-8''50%25%20%22gr%C3%B6%C3%9Fe%22.html`,
    'x-content-type-options': 'nosniff',
    'content-security-policy': "sandbox; default-src 'none'",
    'cross-origin-resource-policy': 'same-origin',
    'content-length': '25',
  })
})

test('a URL with any single character changed is refused', async () => {
  const [url] = await fileUrls()
  for (let at = '/v1beta/files/'.length; at < url!.length; at++) {
    const other = url![at] === 'a' ? 'b' : 'a'
    const forged = `${url!.slice(0, at)}${other}${url!.slice(at + 1)}`
    const answer = await get(forged)
    expect([401, 404], forged).toContain(answer.statusCode)
    expect(answer.body).not.toContain('<script>')
  }
})

test.each([
  ['without a signature', (url: string) => url.split('&')[0]!],
  ['without anything', (url: string) => url.split('?')[0]!],
  ['with the signature twice', (url: string) => `${url}&signature=x`],
  ['with a longer life', (url: string) => url.replace(/expires=(\d+)/, (_, s) => `expires=${Number(s) + 1}`)],
])('a URL %s returns 404', async (_name, forge) => {
  const [url] = await fileUrls()
  const answer = await get(forge(url!))
  expect(answer.statusCode).toBe(404)
  expect(answer.json().error.message).toContain('expired or is not valid')
})

test('a URL expires after one hour, and reading the interaction returns a new one', async () => {
  const [url] = await fileUrls()
  now += 3_599_000
  expect((await get(url!)).statusCode).toBe(200)
  now += 1000
  expect((await get(url!)).statusCode).toBe(404)
  const { body } = await edge.call('GET', `/v1beta/interactions/${edge.engine.runs.at(-1)!.id}`)
  expect((await get(body.files[0].url.replace('https://errand.example', ''))).statusCode).toBe(200)
})

test('a deleted file returns 404', async () => {
  const [, gone] = await fileUrls()
  expect((await get(gone!)).statusCode).toBe(404)
  const [url] = await fileUrls()
  await edge.call('DELETE', `/v1beta/interactions/${edge.engine.runs.at(-1)!.id}`)
  expect((await get(url!)).statusCode).toBe(404)
})
