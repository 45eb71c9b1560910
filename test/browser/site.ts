/** A website on loopback, which the browser reaches through the egress guard: pages by path, and a log of requests. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Answer = string | ((asked: IncomingMessage, answer: ServerResponse) => unknown)

export interface Site {
  readonly port: number
  /** `http://127.0.0.1:…`. Requested by another loopback name, it is another site. */
  url(path: string, host?: string): string
  /** Method and path of each request, in order. */
  readonly asked: string[]
  close(): Promise<void>
}

/** A string is HTML. `{site}` is replaced by the site's address, `{other}` by its address under another name. */
export async function openSite(pages: Readonly<Record<string, Answer>>): Promise<Site> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url!, 'http://site')
    asked.push(`${request.method} ${request.url}`)
    const page = pages[pathname]
    if (typeof page === 'function') return page(request, response)
    response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' })
    response.end(filled(page ?? '<title>Not here</title><p>There is no such page.'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const url = (path: string, host = '127.0.0.1') => `http://${host}:${port}${path}`
  const filled = (html: string) => html.replaceAll('{site}', url('')).replaceAll('{other}', url('', 'other.localhost'))
  return {
    port,
    url,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
