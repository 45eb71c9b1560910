/**
 * A user with a browser, signed in to the console. It keeps the server's cookies and sends the headers of a browser.
 */
import assert from 'node:assert/strict'
import type { Answer, Server } from './server.ts'

export interface Visitor {
  /** Calls the console's own API, or the API of a project. */
  call(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<Answer>
  post(path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>
  /** Value of the Cookie request header. */
  cookies(): string
}

export const PASSWORD = 'a sentence of my own'

export function createVisitor({ url }: Pick<Server, 'url'>): Visitor {
  const jar = new Map<string, string>()
  const cookies = () => [...jar].map(([name, value]) => `${name}=${value}`).join('; ')

  async function call(method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) {
    const response = await fetch(url + path, {
      method,
      redirect: 'manual',
      headers: {
        origin: url,
        'x-errand-console': '1',
        ...(jar.size > 0 && { cookie: cookies() }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!
      if (/max-age=0/i.test(line)) jar.delete(name!)
      else jar.set(name!, value!)
    }
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, body: parse(text) }
  }

  return {
    call,
    get: (path, headers) => call('GET', path, undefined, headers),
    post: (path, body, headers) => call('POST', path, body, headers),
    cookies,
  }
}

/**
 * Creates the first account with the link that the server prints at its start. Returns it with the ids of the account
 * and the project.
 */
export async function firstOwner(server: Server) {
  const token = /\/console\/welcome#(\w+)/.exec(server.output())![1]!
  return comeIn(server, token, 'owner@example.org')
}

/** Creates a user with the token of a one-time link. */
export async function comeIn(server: Pick<Server, 'url'>, token: string, email: string) {
  const visitor = createVisitor(server)
  const person = { token, name: email.split('@')[0], email, password: PASSWORD }
  const { status, text, body } = await visitor.post('/console/api/links/accept', person)
  assert.equal(status, 200, text)
  const [account] = body.accounts
  return {
    ...visitor,
    userId: body.user.id as string,
    account: `/console/api/accounts/${account.id}`,
    project: `/console/api/projects/${account.projects[0]?.id}`,
    projectId: account.projects[0]?.id as string,
  }
}

export type Member = Awaited<ReturnType<typeof comeIn>>

/** Invites another member to the owner's account. Resolves with the new member. */
export async function invite(server: Server, owner: Member, role: string): Promise<Member> {
  const { body } = await owner.post(`${owner.account}/invites`, { role })
  return comeIn(server, tokenOf(body.link), `${role}-${body.invite.id.toLowerCase()}@example.org`)
}

export function tokenOf(link: string): string {
  return link.split('#')[1]!
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
