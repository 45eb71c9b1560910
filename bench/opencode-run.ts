/**
 * A run of opencode: creates a session and sends a message; the response arrives when the run has ended. Events arrive on one
 * stream for all sessions, which is opened once.
 */
import { type Dispatcher, request } from 'undici'
import type { Asked } from './dialects.ts'

/** Callback for the first event of a session's tool. */
const waiting = new Map<string, () => void>()
const called = new Set<string>()
let following: Promise<void> | undefined

export async function runOpencode({ url, dispatcher, instruction, onFirst }: Asked): Promise<string> {
  following ??= follow(url)
  await following
  const session = (await (await post(dispatcher, `${url}/session`, { title: 'bench' })).json()) as { id: string }
  waiting.set(session.id, onFirst)
  const parts = [{ type: 'text', text: instruction }]
  const answer = await post(dispatcher, `${url}/session/${session.id}/message`, { parts })
  const text = await answer.text()
  waiting.delete(session.id)
  return called.delete(session.id) ? text : `It called no tool. ${text}`
}

async function post(dispatcher: Dispatcher, url: string, body: object): Promise<Dispatcher.ResponseData['body']> {
  const headers = { 'content-type': 'application/json' }
  const options = { dispatcher, method: 'POST', headers, body: JSON.stringify(body), headersTimeout: 0, bodyTimeout: 0 }
  return (await request(url, options as Parameters<typeof request>[1])).body
}

/** Resolves when the stream is open. It ends with this process. */
async function follow(url: string): Promise<void> {
  const { body } = await request(`${url}/event`, { bodyTimeout: 0 })
  void read(body).catch(() => {})
}

async function read(body: Dispatcher.ResponseData['body']): Promise<void> {
  let rest = ''
  for await (const bytes of body) {
    const lines = (rest + bytes).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (!line.includes('"type":"tool","tool":"lookup"') && !line.includes('"tool":"lookup"')) continue
      const id = /"sessionID":"(\w+)"/.exec(line)?.[1] ?? ''
      if (called.has(id)) continue
      called.add(id)
      waiting.get(id)?.()
    }
  }
}
